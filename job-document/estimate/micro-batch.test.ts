import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { SMALLEST } from '../testing/documents.js';
import type { RankBudget } from './micro-batch.js';
import { estimateRank } from './rank-memory.js';

const LENGTH = 16;

t.test('a micro-batch of auto', async (t) => {
  const sizeOf = (budget: RankBudget | null, train: JobSpec['train'] = {}, rest: Partial<JobSpec> = {}) => {
    const given = { steps: 10, sequence_length: LENGTH, micro_batch_size: 'auto', ...train } as const;
    const { spec, errors } = resolveSpec({ ...SMALLEST, ...rest, train: given }, null, { budget });
    t.same(errors, []);
    return spec;
  };
  const size = (...given: Parameters<typeof sizeOf>) => sizeOf(...given).train.micro_batch_size;
  const cpu = (bytes: number) => ({ device: 'cpu', bytes }) as const;
  const large = cpu(2 ** 40);

  await t.test('is the largest one that fits into the memory', async (t) => {
    const machine = { device: 'cpu', threads: 1, instruction_set: 'generic' } as const;
    const bytes = (microBatchSize: number, ranks: number) => {
      const spec = sizeOf(large, { global_batch_size: 64, micro_batch_size: microBatchSize });
      return estimateRank(spec, ranks, 0, machine).total;
    };
    for (const fitting of [1, 2, 4, 8, 16]) {
      const globalBatchSize = 64;
      t.equal(size(cpu(bytes(fitting, 1)), { global_batch_size: globalBatchSize }), fitting);
      const ranks = { min: 1, preferred: 4, max: 4 };
      t.equal(
        size(cpu(bytes(fitting, 4)), { global_batch_size: globalBatchSize }, { resources: { ranks } }),
        fitting,
        'of 4 ranks',
      );
    }
    t.equal(size(cpu(0), { global_batch_size: 64 }), 1, 'the smallest if none fits');
    t.equal(size({ device: 'cuda', bytes: 2 ** 40 }, { global_batch_size: 64 }), 16);
    t.equal(size(null, { global_batch_size: 64 }), 4, 'the default without a worker');
  });

  await t.test('leaves leaves for four ranks, and for all of the job', async (t) => {
    const sizes = [1, 3, 4, 6, 12, 30, 64].map((globalBatchSize) =>
      size(large, { global_batch_size: globalBatchSize }),
    );
    t.same(sizes, [1, 1, 1, 1, 3, 6, 16]);
    const resources = { ranks: { min: 1, max: 16 } };
    t.equal(size(large, { global_batch_size: 64 }, { resources }), 4);
    t.equal(size(large, { global_batch_size: 64 }, { zero: { stage: 1, lanes: 8 } }), 8);
    t.equal(size(large, { global_batch_size: 64 }, { zero: { lane_group: 32 } }), 2);
  });

  await t.test('has no more tokens than products have a use for', async (t) => {
    t.equal(size(large, { global_batch_size: 4_096, sequence_length: 64 }), 256);
    const dpo = { objective: { type: 'dpo' } } as const;
    t.equal(
      size(large, { global_batch_size: 4_096, sequence_length: 64, ...dpo }),
      128,
      'two sequences a pair',
    );
    t.equal(size(cpu(0), { global_batch_size: 64, objective: { type: 'kto' } }), 2);
  });

  await t.test('is told by its own rules, if none can be', async (t) => {
    const train = {
      steps: 10,
      sequence_length: LENGTH,
      global_batch_size: 2,
      micro_batch_size: 'auto',
    } as const;
    const { errors } = resolveSpec({ ...SMALLEST, train, resources: { ranks: { min: 3, max: 4 } } }, null, {
      budget: large,
    });
    t.match(errors[0], { code: 'too_many_ranks', suggestion: '2' });
  });
});
