/**
 * Ranks on emulated GPUs that own sets of experts and communicate over a library with NCCL's entry points, all in one
 * process.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { estimateRank, type RankMemory, resolveSpec } from '../../job-document/index.js';
import type { Trainer } from '../../native/js/index.js';
import { connectWorld, tinyTokens, useAddon, worldDigest } from '../../native/js/testing.js';
import { projectRoot } from '../../platform/process/root.js';
import { NcclLog, ncclLine } from '../../worker/rank/nccl-log.js';
import { trainerConfig } from '../../worker/rank/trainer-config.js';
import { startMessage } from '../../worker/testing/start-message.js';

const built = (...names: string[]) => join(projectRoot(), 'native', 'build', ...names);
const ADDON = built('emulated', 'zerofleet.node');
const NCCL = built('fake_nccl');
/** A mixture of four experts, small enough for an emulated device. */
const MODEL = {
  model_type: 'mixtral',
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  num_local_experts: 4,
  vocab_size: 256,
} as const;
/** Workspace of a library that is missing here (job-document/estimate/kernel-memory.ts). */
const CUBLASLT_BYTES = 32 * 2 ** 20;
const MACHINE = { device: 'cuda', threads: 1, instruction_set: 'generic' } as const;

if (!existsSync(ADDON)) {
  t.test(
    'experts on several GPUs',
    { skip: 'the native core is not built for the emulated device' },
    async () => {},
  );
} else if (process.env.LD_LIBRARY_PATH !== NCCL) {
  // The path is read at process start.
  t.spawn(process.execPath, [fileURLToPath(import.meta.url)], {
    env: { ...process.env, LD_LIBRARY_PATH: NCCL },
  });
} else {
  useAddon(ADDON);
  t.test('experts in two sets: equal bits on 2 and 4 GPUs, and the estimated memory', train);
}

async function train(t: Test): Promise<void> {
  const { spec, errors } = resolveSpec(
    {
      model: { config: MODEL },
      data: { dataset: `ds_${'0'.repeat(26)}` },
      train: { steps: 1, sequence_length: 16, micro_batch_size: 1, global_batch_size: 4 },
      zero: { bucket_bytes: 32_768, expert_parallel_size: 2 },
      resources: { ranks: { max: 4 } },
    },
    null,
  );
  t.same(errors, []);
  const tokens = tinyTokens(spec.train.sequence_length);
  t.teardown(() => tokens.remove());
  const digests: string[] = [];
  for (const worldSize of [2, 4]) {
    const start = startMessage({
      spec,
      world_size: worldSize,
      device: 'cuda',
      training_files: [{ path: tokens.path, weight: 1, useful_share: 1 }],
    });
    const log = await NcclLog.begin();
    const world = await connectWorld(trainerConfig(start), worldSize);
    if (log) t.equal(ncclLine(await log.end()), 'NCCL network: Memory, NCCL 2.99.0+fake');
    await Promise.all(world.map((trainer) => trainer.initialize()));
    await Promise.all(world.map((trainer) => trainer.step(0)));
    digests.push(worldDigest(world));
    for (const [rank, trainer] of world.entries()) {
      checkMemory(t, trainer, estimateRank(spec, worldSize, rank, MACHINE));
      trainer.close();
    }
  }
  t.equal(digests[1], digests[0]);
}

/** Checks memory. Untrained routers are uneven: a rank may receive more than its share of rows. */
function checkMemory(t: Test, trainer: Trainer, estimated: RankMemory): void {
  const { workspace: _, activations, ...measured } = trainer.memory();
  const ofTensors = estimated.activations - CUBLASLT_BYTES;
  t.ok(
    activations > ofTensors / 2 && activations < ofTensors * 1.3,
    `activations: ${activations} of ${ofTensors}`,
  );
  for (const [part, bytes] of Object.entries(measured)) {
    const most = Object.entries(estimated).find(([key]) => key === part)?.[1] ?? 0;
    t.ok(bytes <= most, `${part}: ${bytes} of ${most}`);
  }
}
