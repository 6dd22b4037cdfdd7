/**
 * `npm run test:kubernetes -- --cycles 12 --minutes 20 --outage 60 --seed 7`: jobs on pods of a real control plane.
 * First the cycles: no pod, one, three, one, none. Then pods, agents, nodes, the API server and the autoscaler are
 * ended at random while a job trains, and the job is resized. Prints the counts and findings; exit code 1 if bits
 * differ, a pod was created twice, or a step is missing.
 */
import { parseArgs } from 'node:util';
import { whyNoKubernetes } from '../../platform/testing/kubernetes/control-plane.js';
import { runSoak } from './soak.js';

const USAGE = 'usage: npm run test:kubernetes -- [--cycles 12] [--minutes 20] [--outage 60] [--seed 7]\n';

export async function main(args: string[]): Promise<void> {
  const text = (value: string) => ({ type: 'string' as const, default: value });
  const options = {
    cycles: text('12'),
    minutes: text('20'),
    outage: text('60'),
    seed: text(String(Date.now() % 1_000_000)),
  };
  const { values } = parseArgs({ args, options });
  const { cycles, minutes, outage, seed } = values;
  const numbers = [cycles, minutes, outage, seed].map(Number);
  const reason = await whyNoKubernetes();
  if (reason !== null || numbers.some((number) => !(number >= 0))) {
    process.stderr.write(reason === null ? USAGE : `${reason}\n`);
    process.exitCode = 2;
    return;
  }
  const ends: (() => unknown)[] = [];
  const endAll = async () => {
    for (const end of ends.splice(0)) await end();
  };
  // The control plane's programs would outlive this process.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void endAll().finally(() => process.exit(1)));
  try {
    const report = await runSoak(
      { teardown: (end: () => unknown) => ends.unshift(end) },
      {
        cycles: Number(cycles),
        minutes: Number(minutes),
        outage_seconds: Number(outage),
        seed: Number(seed),
      },
    );
    process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    process.exitCode = report.findings.length === 0 ? 0 : 1;
  } finally {
    await endAll();
  }
}
