// npm run lint: the static checks; `npm run lint -- --fix` formats and applies automatic fixes.
import { runMain } from './bootstrap/errors.mjs';
import { setUp } from './bootstrap/setup.mjs';

await runMain(async () => {
  await setUp({ development: true });
  const { runChecks } = await import('./lint/checks.mjs');
  const { failed } = await runChecks({ fix: process.argv.includes('--fix') });
  if (failed > 0) process.exitCode = 1;
});
