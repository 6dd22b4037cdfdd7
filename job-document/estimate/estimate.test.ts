import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { architectureOf } from '../model/families/families.js';
import { numParams } from '../model/params.js';
import { resolveSpec } from '../resolve-spec.js';
import { estimateRank, estimateWorlds, feasibleWorldSizes, maxWorldSize } from './rank-memory.js';

const MACHINE = { device: 'cpu' as const, threads: 1, instruction_set: 'generic' as const };

function resolved(changes: Partial<JobSpec> = {}) {
  const { spec, errors } = resolveSpec(
    {
      model: { preset: 'llama-small' },
      data: { dataset: `ds_${'0'.repeat(26)}` },
      train: { steps: 1, global_batch_size: 64, micro_batch_size: 4 },
      resources: { ranks: { min: 1, max: 16 } },
      ...changes,
    },
    null,
  );
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return spec;
}

t.test('bf16 with AdamW: 2 bytes for each parameter, and 16 that are sharded', async (t) => {
  const spec = resolved();
  const psi = numParams(architectureOf(spec.model.config));
  t.equal(psi, 56_369_664);
  for (const worldSize of [1, 2, 4, 8]) {
    const { params, grad_shard, master, moments } = estimateWorlds(spec, [worldSize], MACHINE)[0]!.bytes;
    const wanted = 2 * psi + (16 * psi) / worldSize;
    const sum = params + grad_shard + master + moments;
    t.ok(Math.abs(sum / wanted - 1) < 0.005, `${worldSize} ranks: ${sum} bytes for ${wanted}`);
  }
});

t.test('all ranks together own everything once', async (t) => {
  const spec = resolved({ train: { steps: 1, global_batch_size: 64, optimizer: { type: 'lion' } } });
  const whole = estimateRank(spec, 1, 0, MACHINE);
  for (const worldSize of [2, 3, 7]) {
    const ranks = Array.from({ length: worldSize }, (_, rank) =>
      estimateRank(spec, worldSize, rank, MACHINE),
    );
    for (const part of ['grad_shard', 'master', 'moments'] as const)
      t.equal(
        ranks.reduce((sum, rank) => sum + rank[part], 0),
        whole[part],
        `${part} of ${worldSize}`,
      );
    const most = Math.max(...ranks.map(({ total }) => total));
    t.equal(estimateWorlds(spec, [worldSize], MACHINE)[0]!.bytes.total, most);
  }
});

t.test('the total is the sum of the parts', async (t) => {
  const { total, ...parts } = estimateRank(resolved({ zero: { stage: 1 } }), 3, 1, MACHINE);
  t.equal(
    Object.values(parts).reduce((sum, bytes) => sum + bytes, 0),
    total,
  );
  t.ok(Object.values(parts).every(Number.isInteger));
});

t.test('the effect of each setting', async (t) => {
  const train = { steps: 1, global_batch_size: 64 };
  const base = estimateRank(resolved(), 4, 0, MACHINE);
  const estimateOf = (changes: Partial<JobSpec>) =>
    estimateRank(resolved({ train, ...changes }), 4, 0, MACHINE);
  t.equal(estimateOf({ train: { ...train, precision: 'fp32' } }).params, 2 * base.params);
  t.equal(estimateOf({ zero: { grad_accum_dtype: 'bf16' } }).grad_shard, base.grad_shard / 2);
  t.equal(estimateOf({ train: { ...train, optimizer: { type: 'sgd', momentum: 0 } } }).moments, 0);
  t.equal(base.lane_accumulator, 0);
  t.equal(estimateOf({ zero: { stage: 1, lanes: 16 } }).lane_accumulator, 0, 'a lane is one leaf');
  const lanes = estimateOf({ zero: { stage: 1 }, train: { ...train, global_batch_size: 128 } });
  t.equal(lanes.lane_accumulator, 2 * base.params);
  const fp16 = { ...train, precision: 'fp16' as const };
  t.equal(
    estimateOf({ train: fp16, zero: { master_dtype: 'fp16', offload: 'cpu' } }).master,
    base.master / 2,
  );
  const frozen = estimateOf({
    train: { ...train, optimizer: { param_groups: [{ match: '*embed*', frozen: true }] } },
  });
  t.ok(frozen.moments < base.moments && frozen.params + frozen.shared_params >= base.params);
  t.equal(frozen.moments, 2 * frozen.master, 'a frozen parameter has no master either');
  const bf16 = estimateRank(resolved(), 4, 0, { ...MACHINE, instruction_set: 'avx512bf16' });
  t.equal(bf16.packed_weights, base.packed_weights / 2);
  const keepsLess = estimateOf({ train: { ...train, activation_checkpointing: true } });
  t.ok(keepsLess.activations < base.activations);
  t.equal(keepsLess.packed_weights, base.packed_weights);
  const threads = estimateRank(resolved(), 4, 0, { ...MACHINE, threads: 3 });
  t.ok(threads.activations > base.activations);
});

t.test('frozen parameters are shared by the ranks of a host that hold them, on CPUs', async (t) => {
  const adapter = { steps: 1, global_batch_size: 64, adapter: { rank: 8 } };
  const estimateOf = (changes: Partial<JobSpec>, ranks: number, device: 'cpu' | 'cuda' = 'cpu') =>
    estimateRank(resolved({ train: adapter, ...changes }), ranks, 0, { ...MACHINE, device });
  const quantized: Partial<JobSpec> = { model: { preset: 'llama-small', quantization: 'nf4' } };
  for (const changes of [{}, quantized]) {
    const alone = estimateOf(changes, 1);
    const two = estimateOf(changes, 2);
    t.equal(alone.shared_params, 0);
    t.equal(two.params + two.shared_params, alone.params);
    t.ok(two.params < alone.params / 4, 'the adapter');
    t.equal(estimateOf(changes, 2, 'cuda').shared_params, 0, 'each GPU has its own');
  }
  const experts: Partial<JobSpec> = {
    model: { preset: 'mixtral-tiny' },
    zero: { expert_parallel_size: 2 },
    resources: { ranks: { min: 2, max: 4 } },
  };
  const [two, four] = [estimateOf(experts, 2), estimateOf(experts, 4)];
  t.ok(two.shared_params > 0 && two.shared_params < four.shared_params, 'two ranks have different experts');
});

t.test('experts in sets: each rank holds its set, and all ranks together own everything once', async (t) => {
  const estimateOf = (expertParallelSize: number) =>
    resolved({
      model: { preset: 'mixtral-tiny' },
      zero: { expert_parallel_size: expertParallelSize },
      resources: { ranks: { max: 16 } },
    });
  const whole = estimateRank(estimateOf(1), 1, 0, MACHINE);
  for (const [sets, worldSize] of [
    [1, 4],
    [2, 4],
    [4, 8],
  ] as const) {
    const ranks = Array.from({ length: worldSize }, (_, rank) =>
      estimateRank(estimateOf(sets), worldSize, rank, MACHINE),
    );
    for (const part of ['grad_shard', 'master', 'moments'] as const)
      t.equal(
        ranks.reduce((sum, rank) => sum + rank[part], 0),
        whole[part],
        `${part} of ${worldSize} in ${sets}`,
      );
    // Four experts with three matrices of 256 x 512 in each of four layers, in two bytes.
    const experts = 4 * 4 * 3 * 256 * 512 * 2;
    t.ok(ranks.every(({ params }) => params === whole.params - experts + experts / sets));
  }
});

t.test('world sizes', async (t) => {
  const sets = resolved({
    model: { preset: 'mixtral-tiny' },
    zero: { expert_parallel_size: 2 },
    resources: { ranks: { max: 6 } },
  });
  t.same(feasibleWorldSizes(sets), [2, 4, 6]);
  t.same(feasibleWorldSizes(resolved({ resources: { ranks: { min: 2, max: 5 } } })), [2, 3, 4, 5]);
  const large = resolved({
    train: { steps: 1, global_batch_size: 1000, micro_batch_size: 1 },
    resources: { ranks: { min: 3, preferred: 100, max: 300 } },
  });
  t.same(feasibleWorldSizes(large), [3, 4, 8, 16, 32, 64, 100, 128, 256, 300]);
  t.equal(maxWorldSize(large), 1000);
  t.equal(maxWorldSize(resolved({ zero: { stage: 1 } })), 16);
});
