/** Estimated GPU memory compared with a rank's use of an emulated device. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { StartMessage } from '../../contracts/rank-protocol.js';
import { estimateRank, resolveSpec } from '../../job-document/index.js';
import { Trainer } from '../../native/js/index.js';
import { tinyTokens, useAddon } from '../../native/js/testing.js';
import { projectRoot } from '../../platform/process/root.js';
import { trainerConfig } from '../../worker/rank/trainer-config.js';
import { startMessage } from '../../worker/testing/start-message.js';
import { JOBS, MODEL } from './jobs.js';
import { runSession, sessionSpecs } from './sessions.js';

const ADDON = join(projectRoot(), 'native', 'build', 'emulated', 'zerofleet.node');
const options = existsSync(ADDON) ? {} : { skip: 'the native core is not built for the emulated device' };
if (existsSync(ADDON)) useAddon(ADDON);

const MACHINE = { device: 'cuda', threads: 1, instruction_set: 'generic' } as const;
const MAX_LENGTH = 1_000;
/** Parts in host memory with `offload: cpu`, and one that is only partly there. */
const OFFLOADED = ['grad_shard', 'master', 'moments'];
const STAGING = 'staging';

for (const [name, { threads: _, train, zero, ...changes }] of Object.entries(JOBS)) {
  // Distributed experts need several ranks: gpu-experts.deep.test.ts.
  if (zero?.expert_parallel_size !== undefined) continue;
  // A GPU takes as many rows at once; and an emulated one takes minutes for them.
  if ((train?.sequence_length ?? 0) > MAX_LENGTH) continue;
  t.test(`${name}: a GPU rank uses at most the estimated memory`, options, async (t) => {
    const { spec, errors } = resolveSpec(
      {
        model: { config: MODEL },
        data: { dataset: `ds_${'0'.repeat(26)}` },
        train: { steps: 2, sequence_length: 16, micro_batch_size: 2, ...train, global_batch_size: 4 },
        zero: { bucket_bytes: 65_536, ...zero, ...(zero?.lanes && { lanes: 2 }) },
        ...changes,
      },
      null,
    );
    t.same(errors, []);
    const tokens = tinyTokens(spec.train.sequence_length);
    t.teardown(() => tokens.remove());
    const start = startMessage({
      spec,
      world_size: 1,
      device: 'cuda',
      training_files: [{ path: tokens.path, weight: 1, useful_share: 1 }],
    });
    const trainer = await connected(t, start);
    await trainer.initialize();
    await trainer.computeReference();
    for (let step = 0; step < 2; step += 1) await trainer.step(0);
    checkMemory(t, trainer, spec);
  });
}

/** The others have the same parts. An emulated device takes half a minute for a session. */
const SESSIONS = [
  'fp32, two threads',
  'DoRA over some matrices',
  'LoRA over experts in fp32',
  'LoRA over llama in NF4',
  'gpt2',
  'gemma2',
];

for (const { name, spec } of sessionSpecs(SESSIONS)) {
  t.test(`${name}: a GPU rank uses at most the estimated memory`, options, async (t) => {
    const start = startMessage({ spec, world_size: 1, device: 'cuda', training_files: [] });
    const trainer = await connected(t, start);
    await runSession([trainer], spec);
    checkMemory(t, trainer, spec);
  });
}

async function connected(t: Test, start: StartMessage): Promise<Trainer> {
  const config = trainerConfig(start);
  const { total } = estimateRank(start.spec, 1, 0, MACHINE);
  t.equal(config.reserved_bytes, total, 'it takes all of it at the start');
  const trainer = Trainer.create(config, () => undefined);
  t.teardown(() => trainer.close());
  await trainer.connect();
  return trainer;
}

function checkMemory(t: Test, trainer: Trainer, spec: ResolvedJobSpec): void {
  const { total, host, ...parts } = estimateRank(spec, 1, 0, MACHINE);
  const { workspace = 0, ...measured } = trainer.memory();
  const offloaded = spec.zero.offload === 'cpu';
  const onGpu = Object.entries(measured).filter(
    ([part]) => !offloaded || !(part === STAGING || OFFLOADED.includes(part)),
  );
  for (const [part, bytes] of onGpu) {
    const estimated = Object.entries(parts).find(([key]) => key === part)?.[1] ?? 0;
    t.ok(bytes <= estimated, `${part}: ${bytes} of ${estimated}`);
  }
  if (offloaded) {
    t.match(parts, Object.fromEntries(OFFLOADED.map((part) => [part, 0])));
    const there = Object.entries(measured).filter(([part]) => OFFLOADED.includes(part));
    const states = there.reduce((sum, [, bytes]) => sum + bytes, 0);
    t.ok(states > 0 && states <= host && host <= states + (measured.staging ?? 0), `${states} of ${host}`);
  } else t.equal(host, 0);
  const taken = onGpu.reduce((sum, [, bytes]) => sum + bytes, workspace);
  t.ok(taken <= total, `${taken} of ${total}`);
}
