// npm test: sets up what is missing, then runs the static checks, the native tests (plain and under the sanitizers), the
// TypeScript tests and those of infra/terraform. The last line is the sum of all of them. `npm test -- lint native` picks parts.
import { runMain, SetupError } from './bootstrap/errors.mjs';
import { setUp } from './bootstrap/setup.mjs';

const parts = {
  lint: async () => {
    const { runChecks } = await import('./lint/checks.mjs');
    return [await runChecks()];
  },
  native: async () => {
    const { runNativeTests } = await import('./test/native.mjs');
    return runNativeTests();
  },
  typescript: async () => {
    const { runTypescriptTests } = await import('./test/typescript.mjs');
    return [await runTypescriptTests()];
  },
  infra: async () => {
    const { runInfraTests } = await import('./test/infra.mjs');
    return [await runInfraTests()];
  },
};

/** A part that could not even be built counts as one failure, and the others still run. */
async function runPart(name) {
  console.log(`\n${name}`);
  try {
    return await parts[name]();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.log(error.message);
    return [{ passed: 0, failed: 1 }];
  }
}

function chosenParts() {
  const chosen = process.argv.slice(2);
  const unknown = chosen.find((name) => !(name in parts));
  if (unknown)
    throw new SetupError(`no part '${unknown}' of the tests; there are: ${Object.keys(parts).join(', ')}`);
  return chosen.length > 0 ? chosen : Object.keys(parts);
}

await runMain(async () => {
  const chosen = chosenParts();
  await setUp();
  const results = [];
  for (const name of chosen) results.push(...(await runPart(name)));
  const sum = (key) => results.reduce((total, result) => total + (result[key] ?? 0), 0);
  const skipped = sum('skipped');
  console.log(
    `\n${sum('passed')} passed, ${sum('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
  );
  if (sum('failed') > 0) process.exitCode = 1;
});
