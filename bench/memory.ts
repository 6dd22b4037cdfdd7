/**
 * Memory of the ZeRO core per rank: `npm run bench -- memory --params 100000000`.
 *
 * For 1, 2, 4 and 8 ranks (threads of a new process each time) two whole steps run on Ψ parameters. The parameters are
 * bf16 with fp32 master, the optimizer is AdamW, and the gradient shard is fp32. The peak resident set, minus the
 * resident set before, is compared with the formula 2Ψ + 16Ψ/N plus the buffers that the core reports. These buffers
 * are two gradient buckets in transit, received pieces, and the gradient that is handed in.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { MemoryProbeResult } from './memory/probe.js';
import { benchOptions, count, counts } from './options.js';
import { report } from './report.js';

const { params, ranks: worldSizes } = benchOptions({ params: count(100_000_000), ranks: counts(1, 2, 4, 8) });

async function probe(worldSize: number): Promise<MemoryProbeResult> {
  const script = fileURLToPath(new URL('./memory/probe.js', import.meta.url));
  const child = fork(script, [String(params), String(worldSize)]);
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`the probe with ${worldSize} ranks ended early (exit code ${code})`);
  });
  const answered = once(child, 'message').then(([message]) => message as MemoryProbeResult);
  return Promise.race([answered, exited]);
}

for (const ranks of worldSizes) {
  const { peak_bytes, parts, handed_in_bytes } = await probe(ranks);
  const formula = 2 * params + (16 * params) / ranks;
  const buffers = parts.send_staging + parts.receive_staging + handed_in_bytes;
  const perRank = peak_bytes / ranks;
  report('memory', {
    params,
    ranks,
    peak_bytes_per_rank: Math.round(perRank),
    formula_bytes: Math.round(formula),
    buffer_bytes: buffers,
    ratio: Number((perRank / (formula + buffers)).toFixed(4)),
    parts,
  });
}
