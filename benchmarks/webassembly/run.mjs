// Runs inside.py in CPython for WebAssembly: node run.mjs PYODIDE MODULES CHECKOUT PACKAGES
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, ...folders] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")));
const python = await loadPyodide({ fullStdLib: true });
const places = ["/modules", "/checkout", "/packages"];
places.forEach((place, index) => {
    python.FS.mkdir(place);
    python.mountNodeFS(place, fs.realpathSync(folders[index]));
});
try {
    python.runPython(`
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ${JSON.stringify(places)}
from benchmarks.webassembly import inside
inside.main()
`);
} catch (error) {
    console.error(error.message);
    process.exit(1);
}
