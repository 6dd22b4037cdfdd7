// npm test: tests for every change; npm run test:deep: the remaining tests (see CONTRIBUTING.md). Both run the set-up first,
// and end with the totals. Arguments select parts by name; other arguments match paths of TypeScript tests:
// `npm test -- lint native`, `npm test -- worker/lease/lease`. `--begin-within SECONDS` skips what has not begun by then.
import { parseArgs } from 'node:util';
import { runMain, SetupError } from './bootstrap/errors.mjs';
import { setUp } from './bootstrap/setup.mjs';
import { TimeLimit } from './test/time-limit.mjs';

// Each part resolves when the next one may begin; native tests then continue in the background.
const lint = async () => ({ results: [await (await import('./lint/checks.mjs')).runChecks()] });
const native = (suites) => async (limit) =>
  (await import('./test/native.mjs')).startNativeTests(suites, limit);
const infra = async (limit) => {
  const { runInfraTests } = await import('./test/infra.mjs');
  return { results: [await limit.within('infra/terraform', runInfraTests)()] };
};
const typescript = (kind) => async (limit, paths) => ({
  results: await (await import('./test/typescript.mjs')).runTypescriptTests(kind, paths, limit),
});

const commands = {
  quick: { lint, native: native(['tests']), typescript: typescript('quick') },
  deep: {
    native: native(['cuda', 'asan', 'emulated-tests', 'tsan']),
    infra,
    typescript: typescript('deep'),
  },
};

/** Runs a part. A part that cannot be built counts as one failure, and the others still run. */
async function runPart(name, part, limit, paths) {
  console.log(`\n${name}`);
  try {
    return await part(limit, paths);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.log(error.message);
    return { results: [{ passed: 0, failed: 1 }] };
  }
}

/** The selected parts of a command, and the path filters of TypeScript tests. */
function chosenParts(parts, words) {
  const paths = words.filter((word) => !(word in parts));
  const names = words.filter((word) => word in parts);
  if (paths.length > 0 && !names.includes('typescript')) names.push('typescript');
  return { names: names.length > 0 ? names : Object.keys(parts), paths };
}

/** @throws SetupError when it has another option, or one without a number */
function readCommandLine() {
  const options = { 'begin-within': { type: 'string', default: 'Infinity' } };
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const seconds = Number(values['begin-within']);
    if (Number.isNaN(seconds)) throw new TypeError('--begin-within takes a number of seconds');
    const [command, ...words] = positionals;
    return { limit: new TimeLimit(seconds), command, words };
  } catch (error) {
    throw new SetupError(error.message);
  }
}

await runMain(async () => {
  const { limit, command, words } = readCommandLine();
  const parts = commands[command];
  const { names, paths } = chosenParts(parts, words);
  await setUp({ development: true });
  const started = [];
  for (const name of names) started.push(await runPart(name, parts[name], limit, paths));
  const results = (await Promise.all(started.map((part) => part.results))).flat();
  const sum = (key) => results.reduce((total, result) => total + (result[key] ?? 0), 0);
  const skipped = sum('skipped');
  console.log(
    `\n${sum('passed')} passed, ${sum('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
  );
  if (sum('failed') > 0) process.exitCode = 1;
});
