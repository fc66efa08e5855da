//! Numbers: ECMAScript's shortest form (RFC 8785, section 3.2.2.3).

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::canonical;
use crate::digest::{CanonicalFault, Digest, to_canonical};

/// Sebastiano Vigna's `SplitMix64`, which gives the same doubles in every run.
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn from_hex(hex: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(hex, 16).expect("a double in hexadecimal"))
}

#[test]
fn appendix_b() {
    let rows = include_str!("../../../fixtures/jcs/rfc8785_appendix_b.csv").lines().skip(1);
    assert_eq!(rows.clone().count(), 26);
    for (hex, expected) in rows.map(|row| row.split_once(',').expect("two columns")) {
        let number = from_hex(hex);
        if expected == "ERROR" {
            let error = to_canonical(&[[number]]).expect_err("it is not finite");
            assert!(matches!(error.fault, CanonicalFault::NotFinite(_)), "{hex}");
            assert_eq!(error.path, "$[0][0]");
            assert!(to_canonical(&number).is_err(), "{hex}");
        } else {
            assert_eq!(canonical(&number), expected, "{hex}");
            assert_eq!(canonical(&[[number]]), format!("[[{expected}]]"), "{hex}");
        }
    }
}

/// The number sequence of the ES6 test file (see `fixtures/jcs/README.md`): edge cases, then the 2,000 doubles from the
/// smallest normal one on, then the doubles of a chain of SHA-256 digests without zeros, infinities and NaN.
fn es6_sequence() -> impl Iterator<Item = f64> {
    let edges = include_str!("../../../fixtures/jcs/es6_edge_cases.csv").lines();
    let edges = edges.map(|line| from_hex(line.split_once(',').expect("two columns").0));
    let serial = (0..2000).map(|n| f64::from_bits(0x0010_0000_0000_0000 + n));
    let digests = std::iter::successors(Some([0; 32]), |block| Some(*Digest::of(block).as_bytes())).skip(1);
    let chained = digests.flat_map(|block| {
        let (doubles, _) = block.as_chunks();
        doubles.iter().copied().map(f64::from_le_bytes).collect::<Vec<_>>()
    });
    edges.chain(serial).chain(chained.filter(|n| *n != 0.0 && n.is_finite()))
}

#[test]
fn es6_test_file() {
    // The published SHA-256 of the first N lines.
    const PREFIXES: [(usize, &str); 3] = [
        (1_000, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"),
        (10_000, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892"),
        (100_000, "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7"),
    ];
    let mut file = Vec::new();
    let mut numbers = es6_sequence();
    let mut lines = 0;
    for (prefix, digest) in PREFIXES {
        for number in numbers.by_ref().take(prefix - lines) {
            let form = canonical(&number);
            assert_eq!(form.parse(), Ok(number), "the form of {number:e} is another number");
            writeln!(file, "{:x},{form}", number.to_bits()).expect("memory takes every write");
        }
        lines = prefix;
        assert_eq!(Digest::of(&file).to_hex(), digest, "the first {prefix} lines");
    }
}

#[test]
fn node_prints_the_same() {
    const SCRIPT: &str = "const lines = require('fs').readFileSync(0, 'utf8').trim().split('\\n');
        const print = (hex) => JSON.stringify(Buffer.from(hex, 'hex').readDoubleBE());
        process.stdout.write(lines.map(print).join('\\n'));";
    let mut random = SplitMix(8785);
    let mut numbers: Vec<f64> = Vec::new();
    while numbers.len() < 21_000 {
        let bits = random.next();
        // Every exponent with equal probability, then millionths as in bundles, then the neighborhood of 2^53.
        numbers.push(Some(f64::from_bits(bits)).filter(|n| n.is_finite()).unwrap_or_default());
        numbers.push(f64::from(u32::try_from(bits >> 40).expect("24 bits")) / 1e6);
        numbers.push(f64::from_bits(0x4340_0000_0000_0000 - 1000 + bits % 2000));
    }
    let input: String = numbers.iter().fold(String::new(), |mut input, number| {
        use std::fmt::Write as _;
        writeln!(input, "{:016x}", number.to_bits()).expect("a string takes every write");
        input
    });

    let mut node = Command::new("node")
        .args(["-e", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs Node.js: `node` must be on the PATH");
    // Node reads everything before it writes, so there is no deadlock.
    node.stdin.take().expect("stdin is piped").write_all(input.as_bytes()).expect("node reads its stdin");
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success(), "node failed: {}", output.status);

    let printed = String::from_utf8(output.stdout).expect("node prints UTF-8");
    let printed: Vec<&str> = printed.lines().collect();
    assert_eq!(printed.len(), numbers.len());
    for (number, printed) in numbers.iter().zip(printed) {
        assert_eq!(canonical(number), printed, "{:016x}", number.to_bits());
    }
}
