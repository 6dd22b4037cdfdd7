import t, { type Test } from 'tap';
import type { InstructionSet, ResolvedJobSpec } from '../../contracts/index.js';
import { architectureOf, estimateRank, feasibleWorldSizes, resolveSpec } from '../../job-document/index.js';
import { fingerprint, type Trainer } from '../../native/js/index.js';
import { closeWorld, connectWorld, tinyTokens } from '../../native/js/testing.js';
import { trainerConfig } from '../../worker/rank/trainer-config.js';
import { startMessage } from '../../worker/testing/start-message.js';
import { JOBS, MODEL } from './jobs.js';
import { runSession, sessionSpecs } from './sessions.js';

const instructionSet = fingerprint().replace(/^cpu-|\/.*$/g, '') as InstructionSet;

/** Allowed range of activations around the estimate: the number of rows per expert depends on the tokens. */
function rangeOfActivations(spec: ResolvedJobSpec, estimated: number): [least: number, most: number] {
  const least = estimated - expertOperands(spec);
  // With distributed experts the estimate assumes an even share of all rows, otherwise the maximum.
  return spec.zero.expert_parallel_size > 1 ? [least, estimated * 1.1] : [least, estimated];
}

/** Maximum bytes of an expert's operands in bf16; 0 for a model without experts, whose estimate is exact. */
function expertOperands({ model: { config }, train }: ResolvedJobSpec): number {
  const { num_experts, hidden_size, intermediate_size } = architectureOf(config);
  const rows = train.micro_batch_size * train.sequence_length;
  return num_experts === 0 ? 0 : 4 * rows * (hidden_size + intermediate_size);
}

/** Compares what each rank of a world has allocated with the estimate. */
function checkWorld(t: Test, world: Trainer[], spec: ResolvedJobSpec, threads: number): void {
  for (const [rank, trainer] of world.entries()) {
    const { total, ...estimated } = estimateRank(spec, world.length, rank, {
      device: 'cpu',
      threads,
      instruction_set: instructionSet,
    });
    const { staging, ...measured } = trainer.memory();
    const { staging: wanted, host, ...others } = estimated;
    t.equal(host, 0, 'no memory of a host beside a GPU');
    const [least, most] = rangeOfActivations(spec, others.activations);
    t.ok(
      measured.activations >= least && measured.activations <= most,
      `rank ${rank} of ${world.length}: ${measured.activations} of ${others.activations}`,
    );
    t.strictSame({ ...measured, activations: others.activations }, others, `rank ${rank} of ${world.length}`);
    // The second bucket is allocated only if the first one is still in transit when it is started.
    t.ok(
      staging === wanted || staging === wanted - spec.zero.bucket_bytes,
      `${staging} of ${wanted} staging`,
    );
  }
}

for (const [name, { threads = 1, train, zero, ...changes }] of Object.entries(JOBS)) {
  t.test(`${name}: the estimate equals the measurement`, async (t) => {
    const { spec, errors } = resolveSpec(
      {
        model: { config: MODEL },
        data: { dataset: `ds_${'0'.repeat(26)}` },
        train: { steps: 2, sequence_length: 16, global_batch_size: 16, micro_batch_size: 2, ...train },
        zero: { bucket_bytes: 65_536, ...zero },
        resources: { ranks: { max: 4 } },
        ...changes,
      },
      null,
    );
    t.same(errors, []);
    const tokens = tinyTokens(spec.train.sequence_length);
    t.teardown(() => tokens.remove());
    for (const worldSize of feasibleWorldSizes(spec)) {
      const start = startMessage({
        spec,
        threads,
        world_size: worldSize,
        training_files: [{ path: tokens.path, weight: 1, useful_share: 1 }],
      });
      const world = await connectWorld(trainerConfig(start), worldSize);
      try {
        await Promise.all(world.map((trainer) => trainer.initialize()));
        await Promise.all(world.map((trainer) => trainer.computeReference()));
        for (let step = 0; step < 2; step += 1) await Promise.all(world.map((trainer) => trainer.step(0)));
        checkWorld(t, world, spec, threads);
      } finally {
        await closeWorld(world);
      }
    }
  });
}

for (const { name, spec, threads } of sessionSpecs()) {
  t.test(`${name}: the estimate equals the measurement after a sample`, async (t) => {
    for (const worldSize of feasibleWorldSizes(spec)) {
      const start = startMessage({ spec, threads, world_size: worldSize, training_files: [] });
      const world = await connectWorld(trainerConfig(start), worldSize);
      try {
        await runSession(world, spec);
        checkWorld(t, world, spec, threads);
      } finally {
        await closeWorld(world);
      }
    }
  });
}
