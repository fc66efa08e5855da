// Evaluates the verifications of fourslash cases.
//
// Reads a list of cases from standard input: the source, the names of its files, and its markers and ranges. Writes for each the calls
// of the `verify...` methods: name, arguments, and the files that are open by then; or an error.

'use strict';

const vm = require('vm');

function makeHelper(input, calls) {
    const markers = input.markers;
    const ranges = input.ranges.map((range) => ({
        ...range,
        marker: range.marker === null ? undefined : markers[range.marker],
    }));
    const open = new Set(input.files.slice(0, 1));
    const byName = (name) => {
        const found = markers.find((marker) => marker.name === name);
        if (!found) {
            throw new Error(`there is no marker ${name}`);
        }
        return found;
    };
    const helper = {
        BOF: 0,
        openFile: (file) => open.add(typeof file === 'number' ? input.files[file] : file),
        openFiles: (files) => files.forEach(helper.openFile),
        getMappedFilePath: (path) => path,
        getDocumentHighlightKind: () => undefined,
        getMarkers: () => [...markers],
        getMarkerNames: () => markers.map((marker) => marker.name),
        getMarkerName: (marker) => marker.name,
        getMarkerByName: byName,
        getRanges: () => ranges,
        getRangesByText: () => {
            const found = new Map();
            ranges.forEach((range) => found.set(range.text, [...(found.get(range.text) ?? []), range]));
            return found;
        },
        getFilteredRanges: (keep) => ranges.filter((range) => keep(range.marker, range.marker?.data, range.text)),
        getPositionRange: (name) => ranges.find((range) => range.marker === byName(name)).range,
        convertPositionRange: (range) => range.range,
        expandPositionRange: ({ start, end }, before, after) => ({
            start: { line: start.line, character: start.character - before },
            end: { line: end.line, character: end.character + after },
        }),
        // Only a case of completion edits.
        replace: () => undefined,
    };
    return new Proxy(helper, {
        get(target, method) {
            if (method.startsWith('verify')) {
                return (...rest) => calls.push({ method, arguments: rest, open: [...open] });
            }
            if (!(method in target)) {
                throw new Error(`the method ${method} is not known`);
            }
            return target[method];
        },
    });
}

const kinds = (values) => new Proxy(values, { get: (known, name) => known[name] ?? name });

const Consts = new Proxy(
    {
        CodeActionKind: { QuickFix: 'quickfix', Refactor: 'refactor' },
        Commands: { createTypeStub: 'pyright.createtypestub', orderImports: 'pyright.organizeimports' },
    },
    { get: (known, name) => known[name] ?? kinds({}) }
);

async function evaluate(input) {
    const calls = [];
    try {
        const run = vm.runInNewContext(`(async function (helper, Consts) {\n${input.source}\n})`, {});
        await run(makeHelper(input, calls), Consts);
        return { calls, error: null };
    } catch (error) {
        return { calls, error: String(error) };
    }
}

async function main() {
    const inputs = JSON.parse(require('fs').readFileSync(0, 'utf8'));
    const found = [];
    for (const input of inputs) {
        found.push(await evaluate(input));
    }
    process.stdout.write(JSON.stringify(found));
}

main();
