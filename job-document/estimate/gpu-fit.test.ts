import t from 'tap';
import type { JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { GPU_RESERVE_BYTES, gpuBytesBySize, gpuMisfit, gpuRankBytes } from './gpu-fit.js';
import { estimateRank, estimateWorlds } from './rank-memory.js';

const CPU = { device: 'cpu', threads: 2, instruction_set: 'avx2' } as const;
const CUDA = { ...CPU, device: 'cuda' } as const;

function resolved(changes: Partial<JobSpec> = {}): ResolvedJobSpec {
  const { spec, errors } = resolveSpec(
    {
      model: { preset: 'gpt2' },
      data: { dataset: `ds_${'0'.repeat(26)}` },
      train: { steps: 1, sequence_length: 1024, global_batch_size: 64, micro_batch_size: 8 },
      resources: { ranks: { min: 1, max: 4, preferred: 2 } },
      ...changes,
    },
    null,
  );
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return spec;
}

const just = (bytes: number, count = 4) => Array.from({ length: count }, () => bytes);

t.test('a GPU has the tensors of a CPU, more logits at once, and no packed operands', async (t) => {
  for (const preset of ['gpt2', 'llama-small', 'mixtral-tiny'] as const) {
    const spec = resolved({ model: { preset } });
    const { activations, packed_weights, total, ...zero } = estimateRank(spec, 2, 0, CUDA);
    const onCpu = estimateRank(spec, 2, 0, CPU);
    t.equal(packed_weights, 0);
    t.match(onCpu, zero, 'the ZeRO core is the same');
    // 1 GiB in fp32, as many gradients in bf16, and these once more with the weight for a trial of their product.
    const logits = 2.25 * 2 ** 30;
    t.ok(activations < onCpu.activations + logits && activations > onCpu.activations / 2, preset);
    t.equal(total, estimateRank(spec, 2, 0, { ...CUDA, threads: 64 }).total, 'threads do not matter');
  }
});

t.test('a GPU has logits of up to 1 GiB, in equal chunks, and gradients of as many rows', async (t) => {
  const activations = (vocabSize: number, device: 'cpu' | 'cuda') => {
    const spec = resolved({
      model: {
        config: {
          model_type: 'gpt2',
          vocab_size: vocabSize,
          n_positions: 1024,
          n_embd: 768,
          n_layer: 2,
          n_head: 12,
        },
      },
      train: { steps: 1, sequence_length: 1024, global_batch_size: 64, micro_batch_size: 8 },
    });
    return estimateRank(spec, 1, 0, { ...CPU, device }).activations;
  };
  const embedding = 4 * 768 * 64; // the gradient of 64 tokens' rows
  const trial = 64 * 4096 * 2 + 4 * 768 * 64; // gradients, and what they are added to, of the product that needs most
  t.equal(activations(50_304, 'cuda') - activations(50_240, 'cuda'), 64 * 4096 * (4 + 2) + embedding + trial);
  t.equal(activations(50_304, 'cpu') - activations(50_240, 'cpu'), 64 * (64 * 4 + 640 * 2) + embedding);
  const sums = 4 * 4096 * 768; // of the gradient of the head's input, whose vocabulary is divided
  t.equal(
    activations(50_257, 'cuda') - activations(50_272, 'cuda'),
    sums - 15 * (4 + 4) * 768,
    'rows are padded',
  );
});

t.test('offloaded state is not on the GPU', async (t) => {
  const spec = resolved({ zero: { offload: 'cpu' } });
  const none = estimateRank(resolved(), 2, 0, CUDA);
  const { total, ...parts } = estimateRank(spec, 2, 0, CUDA);
  t.strictSame(parts, { ...parts, grad_shard: 0, master: 0, moments: 0 });
  t.ok(parts.host > none.grad_shard + none.master + none.moments, 'but in host memory');
  t.equal(none.host, 0);
  t.equal(none.total - total, none.grad_shard + none.master + none.moments);
  const sums = ((16_777_216 / 2) * 4) / 4; // a bucket of bf16, four owners
  const more = (spec: ResolvedJobSpec) =>
    estimateRank(spec, 4, 0, CUDA).staging - estimateRank(spec, 2, 0, CUDA).staging;
  t.equal(more(spec) - more(resolved()), sums, 'gradients of four ranks are added up on the GPU');
  t.strictSame(
    estimateRank(spec, 2, 0, CPU),
    estimateRank(resolved(), 2, 0, CPU),
    'on a CPU both are the same',
  );
});

t.test('the bytes of a rank are the maximum over the ranks plus a reserve', async (t) => {
  for (const zero of [{}, { stage: 1 as const, lanes: 6 }]) {
    const spec = resolved({ zero });
    for (const [size, bytes] of gpuBytesBySize(spec))
      t.equal(bytes, estimateWorlds(spec, [size], CUDA)[0]!.bytes.total + GPU_RESERVE_BYTES, `${size} ranks`);
  }
});

t.test('a job fits if one of its numbers of ranks does', async (t) => {
  const spec = resolved();
  const [one, two, four] = [1, 2, 4].map((size) => gpuRankBytes(spec, size)) as [number, number, number];
  t.ok(one > two && two > four, 'more ranks need less memory each');
  t.equal(gpuMisfit(spec, []), null, 'unknown without GPUs');
  t.equal(gpuMisfit(spec, [one]), null);
  t.equal(gpuMisfit(spec, just(four)), null);
  t.equal(gpuMisfit(spec, [four]), null, 'more GPUs may be added');
  t.match(gpuMisfit(spec, just(four - 1)), { world_size: 4, bytes: four, gpu_memory_bytes: four - 1 });
  t.match(gpuMisfit(spec, [two, ...just(four - 1)]), { gpu_memory_bytes: two }, 'one large GPU is too few');
  t.equal(gpuMisfit(spec, [two, two, ...just(four - 1)]), null);
});

t.test('the remedies make the job fit', async (t) => {
  const spec = resolved({
    train: { steps: 1, sequence_length: 1024, global_batch_size: 64, micro_batch_size: 16 },
    resources: { ranks: { min: 1, max: 2 } },
  });
  const at = (changes: Partial<ResolvedJobSpec>, size: number) => gpuRankBytes({ ...spec, ...changes }, size);
  const least = at({}, 2);
  t.strictSame(gpuMisfit(spec, just(least - 1))?.remedies, [
    'resources.ranks.max: 3 or more',
    'train.activation_checkpointing: true',
    'zero.offload: cpu',
    'train.micro_batch_size: 8',
  ]);
  const checkpointing = at({ train: { ...spec.train, activation_checkpointing: true } }, 2);
  t.strictSame(gpuMisfit(spec, just(checkpointing))?.remedies, [
    'train.activation_checkpointing: true',
    'train.micro_batch_size: 2',
  ]);
  const smallest = {
    ...spec,
    train: { ...spec.train, activation_checkpointing: true, micro_batch_size: 1 },
    zero: { ...spec.zero, offload: 'cpu' as const },
  };
  const all = gpuMisfit(spec, just(gpuRankBytes(smallest, 2)))?.remedies;
  t.strictSame(
    all,
    ['train.activation_checkpointing: true, zero.offload: cpu, train.micro_batch_size: 1'],
    'together, since none alone suffices',
  );
  t.strictSame(gpuMisfit(spec, just(2 ** 20))?.remedies, [], 'no remedy');
});
