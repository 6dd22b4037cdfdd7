/**
 * One rank of the `train` benchmark, a child process: receives its configuration, runs all steps, reports their phases.
 */
import { endWithParent, type StepResult, Trainer, type TrainerConfig } from '../native/js/index.js';
import { proportionalBytes } from './memory/process-memory.js';
import type { Publication, RankReport } from './train-ranks.js';

endWithParent();

function send(message: RankReport | Publication): void {
  process.send?.(message);
}

async function run(trainer: Trainer, numSteps: number): Promise<RankReport> {
  const startRssBytes = process.memoryUsage.rss();
  await trainer.connect();
  await trainer.initialize();
  const steps: StepResult[] = [];
  for (let step = 0; step < numSteps; step++) steps.push(await trainer.step(0));
  const peakRssBytes = process.resourceUsage().maxRSS * 1024;
  const pssBytes = await proportionalBytes();
  return {
    kind: 'report',
    steps,
    peak_rss_bytes: peakRssBytes,
    start_rss_bytes: startRssBytes,
    pss_bytes: pssBytes,
    memory: trainer.memory(),
  };
}

let trainer: Trainer | undefined;
const early: Publication[] = []; // from ranks that received their configuration earlier

process.on('message', (message: Publication | { kind: 'config'; config: TrainerConfig }) => {
  if (message.kind === 'publish') {
    if (trainer) trainer.deliver(message.key, message.value);
    else early.push(message);
    return;
  }
  trainer = Trainer.create(message.config, (key, value) => send({ kind: 'publish', key, value }));
  for (const { key, value } of early) trainer.deliver(key, value);
  run(trainer, message.config.steps).then(send, (error) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  });
});
process.on('disconnect', () => process.exit(0));
