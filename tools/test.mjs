// npm test: tests for every change; npm run test:deep: the remaining tests (see CONTRIBUTING.md). Both run the set-up
// first, and end with the totals. Arguments select parts by name; other arguments match paths of TypeScript tests:
// `npm test -- lint native`, `npm test -- worker/agent/lease/lease`.
//   --within SECONDS        time limit: no suite begins in its last three minutes; suites that were not run are named
//                           at the end
// Of npm run test:deep only:
//   --changed REVISION      suites that changes since REVISION can affect; uncommitted changes count
//   --changed-hours HOURS   the same since the newest commit over HOURS old; all suites if there is none
//   --and-third-of-day      in addition a third of the other suites, each day another third
//   --list                  prints the selection and runs nothing
import { parseArgs } from 'node:util';
import { runMain, SetupError } from './bootstrap/errors.mjs';
import { setUp } from './bootstrap/setup.mjs';
import { planDeepTests } from './test/deep.mjs';
import { SuiteRuns } from './test/suite-runs.mjs';
import { testFiles } from './test/suites.mjs';

const options = {
  within: { type: 'string', default: 'Infinity' },
  changed: { type: 'string' },
  'changed-hours': { type: 'string' },
  'and-third-of-day': { type: 'boolean', default: false },
  list: { type: 'boolean', default: false },
};

// Each part resolves when the next one may begin; native tests then continue in the background.
const lint = async (_, runs) => runs.add(await (await import('./lint/checks.mjs')).runChecks());
const native = async (presets, runs) => (await import('./test/native.mjs')).startNativeTests(presets, runs);
const infra = async (_, runs) => {
  const { runInfraTests } = await import('./test/infra.mjs');
  await runs.suite('infra', runInfraTests, { retries: false })();
};
const typescript = (kind) => async (files, runs) =>
  (await import('./test/typescript.mjs')).runTypescriptTests(kind, files, runs);

const parts = {
  quick: { lint, native, typescript: typescript('quick') },
  deep: { native, infra, typescript: typescript('deep') },
};

/** Runs a part. A part that cannot be built counts as one failure, and the others still run. */
async function runPart(name, part, suites, runs) {
  console.log(`\n${name}`);
  try {
    await part(suites, runs);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.log(error.message);
    runs.add({ passed: 0, failed: 1 });
  }
}

/** @returns {{part: string, suites: string[]}[]} what runs, one after another */
function planQuickTests(words) {
  const paths = words.filter((word) => !(word in parts.quick));
  const isAsked = (part) => words.length === 0 || words.includes(part);
  const files = isAsked('typescript') || paths.length > 0 ? testFiles('quick', paths) : [];
  return [
    ...(isAsked('lint') ? [{ part: 'lint', suites: [] }] : []),
    ...(isAsked('native') ? [{ part: 'native', suites: ['tests'] }] : []),
    ...(files.length > 0 ? [{ part: 'typescript', suites: files }] : []),
  ];
}

/** @throws SetupError when it has another option, or one without a number */
function readCommandLine() {
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    for (const name of ['within', 'changed-hours'])
      if (Number.isNaN(Number(values[name] ?? 0))) throw new TypeError(`--${name} takes a number`);
    const [kind, ...words] = positionals;
    const other = ['changed', 'changed-hours', 'and-third-of-day', 'list'].find((name) => values[name]);
    if (kind === 'quick' && other) throw new TypeError(`--${other} is an option of npm run test:deep`);
    return { kind, words, values };
  } catch (error) {
    throw new SetupError(error.message);
  }
}

await runMain(async () => {
  const { kind, words, values } = readCommandLine();
  const runs = new SuiteRuns({ within_s: Number(values.within), retries: kind === 'deep' });
  const steps = kind === 'deep' ? planDeepTests(words, values) : planQuickTests(words);
  if (values.list) return;
  await setUp({ development: true });
  for (const { part, suites } of steps) await runPart(part, parts[kind][part], suites, runs);
  const { passed, failed, skipped } = await runs.finish();
  console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  if (failed > 0) process.exitCode = 1;
});
