import t from 'tap';
import type { SaveRef, ShardMessage } from '../../../contracts/rank-protocol.js';
import { deferred } from '../../shared/deferred.js';
import { type CompleteSave, SaveCollector } from './save-collector.js';

function ref(step: number, directory = `step-${step}`): SaveRef {
  return {
    directory,
    step,
    optimizer_steps: step,
    skipped_steps: 0,
    eval_losses: {},
    early_stopping: null,
    calls: null,
    reference: null,
    loss_scaler: {
      scale: 2,
      iteration: step,
      last_overflow_iteration: -1,
      hysteresis: 2,
      skipped_in_a_row: 0,
    },
  };
}

function report(save: SaveRef, rank: number): ShardMessage {
  const shard = { file: `shard-${rank}`, bytes: 0, data_begin: 0, sha256: '', crc32c: '' };
  const cost = { stall_seconds: 0.5 + rank, write_seconds: 4 - rank };
  const saveRequest = rank === 0 ? 7 : 0;
  return {
    kind: 'shard',
    save,
    shard,
    digest_part: `digest-${rank}`,
    base_digest_part: null,
    save_request: saveRequest,
    cost,
  };
}

function collector(commit: (save: CompleteSave) => Promise<void>) {
  const failed: { step: number; code: unknown }[] = [];
  const onFailed = ({ step }: SaveRef, error: unknown) =>
    failed.push({ step, code: (error as { code?: string }).code });
  return { failed, saves: new SaveCollector({ world_size: 2, commit, onFailed }) };
}

t.test('the cost of a save is that of its slowest rank, and rank 0 has the save request', async (t) => {
  const committed: CompleteSave[] = [];
  const { saves } = collector(async (save) => void committed.push(save));
  saves.shard(1, report(ref(5), 1));
  saves.shard(0, report(ref(5), 0));
  await saves.settled();
  t.match(committed, [{ save_request: 7, cost: { stall_seconds: 1.5, write_seconds: 4 } }]);
});

t.test('a save is committed once every rank has reported, in order of rank', async (t) => {
  const committed: CompleteSave[] = [];
  const { saves } = collector(async (save) => void committed.push(save));
  saves.shard(1, report(ref(5), 1));
  await saves.settled();
  t.equal(committed.length, 0);
  saves.shard(0, report(ref(5), 0));
  await saves.settled();
  t.strictSame(
    committed.map(({ step, shards, digest_parts }) => ({
      step,
      files: shards.map(({ file }) => file),
      digest_parts,
    })),
    [{ step: 5, files: ['shard-0', 'shard-1'], digest_parts: ['digest-0', 'digest-1'] }],
  );
});

t.test('commits run one after the other', async (t) => {
  const log: string[] = [];
  const gate = deferred<void>();
  const { saves } = collector(async ({ step }) => {
    log.push(`begin ${step}`);
    if (step === 5) await gate.promise;
    log.push(`end ${step}`);
  });
  for (const step of [5, 10]) for (const rank of [0, 1]) saves.shard(rank, report(ref(step), rank));
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(log, ['begin 5']);
  gate.resolve();
  await saves.settled();
  t.strictSame(log, ['begin 5', 'end 5', 'begin 10', 'end 10']);
});

t.test('a failed shard fails its save once and does not affect later saves', async (t) => {
  const committed: number[] = [];
  const { saves, failed } = collector(async ({ step }) => void committed.push(step));
  saves.shard(0, report(ref(5), 0));
  for (const _ of [0, 1]) {
    saves.shardFailed({ kind: 'shard_failed', save: ref(5), error: { code: 'disk_full', message: '' } });
  }
  for (const step of [5, 10]) for (const rank of [0, 1]) saves.shard(rank, report(ref(step), rank));
  await saves.settled();
  t.strictSame(failed, [{ step: 5, code: 'disk_full' }]);
  t.strictSame(committed, [10]);
});

t.test('a rejected commit fails its save, and the next one is tried', async (t) => {
  const committed: number[] = [];
  const { saves, failed } = collector(async ({ step }) => {
    if (step === 5) throw Object.assign(new Error('no room'), { code: 'disk_full' });
    committed.push(step);
  });
  for (const step of [5, 10]) for (const rank of [0, 1]) saves.shard(rank, report(ref(step), rank));
  await saves.settled();
  t.strictSame({ failed, committed }, { failed: [{ step: 5, code: 'disk_full' }], committed: [10] });
});

t.test('ranks that disagree about the step or the loss scale make no checkpoint', async (t) => {
  const { saves, failed } = collector(async () => void t.fail('must not be committed'));
  saves.shard(0, report(ref(5, 'same'), 0));
  saves.shard(1, report(ref(6, 'same'), 1));
  const other = ref(7);
  other.loss_scaler = { ...other.loss_scaler, scale: 1 };
  saves.shard(0, report(ref(7), 0));
  saves.shard(1, report(other, 1));
  await saves.settled();
  t.strictSame(failed, [
    { step: 6, code: 'checkpoint_incomplete' },
    { step: 7, code: 'checkpoint_incomplete' },
  ]);
});
