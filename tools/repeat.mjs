// npm run test:repeat -- --runs 10 --busy 2: runs `npm test` repeatedly, on an unchanged, busy or slow machine.
//   --runs N        number of runs (default 1)
//   --busy N        in parallel with N busy processes
//   --processor F   with this fraction of the machine's CPU time (a control group; needs root)
//   -- COMMAND      instead of npm test
// Prints a JSON line per run; outputs are stored in .build/repeat/. Exits with 1 if a run failed.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runMain, SetupError } from './bootstrap/errors.mjs';
import { busyProcesses, limitProcessor, repeat } from './test/repeat.mjs';

const options = {
  runs: { type: 'string', default: '1' },
  busy: { type: 'string', default: '0' },
  processor: { type: 'string', default: '1' },
};

await runMain(async () => {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [runs, busy, processor] = [values.runs, values.busy, values.processor].map(Number);
  if (!(runs >= 1 && busy >= 0 && processor > 0 && processor <= 1))
    throw new SetupError(
      'usage: npm run test:repeat -- [--runs N] [--busy N] [--processor 0..1] [-- COMMAND ...]',
    );
  const stopBusy = busyProcesses(busy);
  const unlimited = processor < 1 ? limitProcessor(processor * availableParallelism()) : () => {};
  try {
    const command = positionals.length > 0 ? positionals : ['npm', 'test'];
    const failed = await repeat(command, { runs, busy, processor });
    if (failed > 0) process.exitCode = 1;
  } finally {
    unlimited();
    stopBusy();
  }
});
