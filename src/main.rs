//! The `lanser` binary.

fn main() -> std::process::ExitCode {
    lanser::main()
}
