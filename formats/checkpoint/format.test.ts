/** Names, digests, manifests and safetensors headers. */
import t from 'tap';
import { testManifest } from '../testing/checkpoints.js';
import { replaceInDigest, sumDigests } from './digest.js';
import * as layout from './layout.js';
import {
  CHUNK_BYTES,
  crcOfChunk,
  encodeManifest,
  FORMAT_VERSION,
  hexCrc,
  type Manifest,
  parseManifest,
} from './manifest.js';
import { seal } from './manifest-seal.js';
import { statesOf } from './shard-contents.js';

t.test('layout', async (t) => {
  const save = { step: 1200, execution: '13-c3D4', nonce: 'a1B2' } as const;
  const directory = layout.checkpointDirectory(save);
  t.equal(directory, '000001200-13-c3D4-a1B2');
  t.same(layout.parseCheckpointDirectory(directory), save);
  t.same(layout.parseCheckpointDirectory(layout.checkpointDirectory({ ...save, step: 12_345_678_901 })), {
    ...save,
    step: 12_345_678_901,
  });
  for (const name of [
    '',
    'x',
    'x000001200-3-a-b',
    '12-3-a-b',
    '000001200-3-a',
    '000001200-3--b',
    '000001200-3-a-b/c',
    '000001200--a-b',
  ]) {
    t.equal(layout.parseCheckpointDirectory(name), null, name);
  }
  t.equal(layout.checkpointKey('job_1', directory), 'jobs/job_1/checkpoints/000001200-13-c3D4-a1B2');
  t.ok(layout.checkpointKey('job_1', directory).startsWith(layout.checkpointsPrefix('job_1')));
  t.equal(layout.shardName(2, 4), 'shard-00002-of-00004.safetensors');
  t.equal(layout.exportPrefix('job_1', 7), 'jobs/job_1/exports/7');
  t.equal(layout.resultKey('job_1'), 'jobs/job_1/result.json');
  t.equal(layout.specKey('job_1'), 'jobs/job_1/spec.json');
  t.equal(layout.desiredKey('job_1'), 'jobs/job_1/desired.json');
  t.equal(layout.deletedKey('job_1'), 'jobs/job_1/deleted.json');
  t.equal(layout.pinKey('jobs/job_1/checkpoints/x'), 'jobs/job_1/checkpoints/x/PINNED');
  t.equal(layout.exportsPrefix('job_1'), 'jobs/job_1/exports/');
  const wanted = {
    checkpoint: 'ckpt_1',
    format: 'hf',
    dtype: 'bf16',
    weights: 'trained',
    tensorboard: false,
  };
  t.equal(layout.checkpointExportPrefix('job_1', 7, wanted), 'jobs/job_1/exports/7-ckpt_1-hf-bf16');
  const average = { ...wanted, weights: 'ema' };
  t.equal(layout.checkpointExportPrefix('job_1', 7, average), 'jobs/job_1/exports/7-ckpt_1-hf-bf16-ema');
  const measured = { ...average, tensorboard: true };
  t.equal(
    layout.checkpointExportPrefix('job_1', 7, measured),
    'jobs/job_1/exports/7-ckpt_1-hf-bf16-ema-tensorboard',
  );
});

t.test('saves are in the order of steps, then epochs as numbers, then ids', (t) => {
  const save = (step: number, execution: layout.SaveOrder['execution'], id?: string) => ({
    step,
    execution,
    id,
  });
  const ordered = [
    save(9, '12-a', 'ckpt_9'),
    save(10, '9-b', 'ckpt_1'),
    save(10, '9-a', 'ckpt_2'),
    save(10, '9-a'),
    save(10, '10-a', 'ckpt_0'),
    save(11, '1-a', 'ckpt_0'),
  ];
  for (const mixed of [ordered.toReversed(), [3, 0, 5, 1, 4, 2].flatMap((i) => ordered[i] ?? [])])
    t.strictSame(mixed.sort(layout.compareSaves), ordered);
  t.equal(layout.compareSaves(save(1, '1-a', 'x'), save(1, '1-b', 'x')), 0);
  t.end();
});

t.test('a part of a digest is replaced by another', (t) => {
  const [a, b, c] = ['1', 'f', '9'].map((digit) => digit.repeat(32)) as [string, string, string];
  t.equal(replaceInDigest(sumDigests([a, b]), b, c), sumDigests([a, c]));
  t.equal(replaceInDigest(sumDigests([a, b]), b, b), sumDigests([a, b]));
  t.equal(replaceInDigest(a, '0'.repeat(32), '0'.repeat(32)), a);
  t.end();
});

t.test('digests add up modulo 2^128, in any order', async (t) => {
  const zero = '0'.repeat(32);
  const one = `${'0'.repeat(31)}1`;
  const most = 'f'.repeat(32);
  t.equal(sumDigests([]), zero);
  t.equal(sumDigests([one]), one);
  t.equal(sumDigests([most, one]), zero, 'wraps around');
  t.equal(sumDigests([most, most, most]), `${'f'.repeat(31)}d`);
  const parts = ['0123456789abcdef0123456789abcdef', most, '80000000000000000000000000000000'];
  t.equal(sumDigests(parts), sumDigests([...parts].reverse()));
  for (const bad of ['', 'ff', `0x${'f'.repeat(30)}`, 'G'.repeat(32), `x${one}`, `${one}x`])
    t.throws(() => sumDigests([bad]), RangeError);
});

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

t.test('a checksum has eight digits', async (t) => {
  t.equal(hexCrc(0xe3069283), 'e3069283');
  t.equal(hexCrc(10), '0000000a');
  t.equal(crcOfChunk('e30692830000000a', 1), '0000000a');
  t.equal(crcOfChunk('e30692830000000a', 2), '');
});

t.test('a manifest reads back as it was written', async (t) => {
  const manifest = testManifest({ numels: [5000, 12], ranks: 2 });
  t.same(parseManifest(encodeManifest(manifest)), manifest);
  const lion = testManifest({ numels: [5000, 12], ranks: 2, states: ['master', 'exp_avg'], frozen: [1] });
  t.same(parseManifest(encodeManifest({ ...lion, optimizer: 'lion' })), { ...lion, optimizer: 'lion' });
});

t.test('a frozen parameter has only its master', async (t) => {
  t.same(statesOf({ frozen: true, base: false }, ['master', 'exp_avg']), ['master']);
  t.same(statesOf({ frozen: false, base: false }, ['master', 'exp_avg']), ['master', 'exp_avg']);
});

t.test('every changed byte and every truncation of a manifest is detected', async (t) => {
  const good = encodeManifest(testManifest({ numels: [60, 12], ranks: 2 }));
  const refused: number[] = [];
  const cut: number[] = [];
  const isRefused = (bytes: Buffer) => {
    try {
      parseManifest(bytes);
      return false;
    } catch (error) {
      return (error as { code?: string }).code === 'manifest_invalid';
    }
  };
  for (let at = 0; at < good.length; at += 1) {
    // Flips one bit of each byte, each bit position in turn.
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ (1 << (at % 8));
    if (isRefused(bad)) refused.push(at);
    if (isRefused(good.subarray(0, at))) cut.push(at);
  }
  t.equal(refused.length, good.length);
  t.equal(cut.length, good.length);
  const other = encodeManifest({ ...testManifest({ numels: [60, 12], ranks: 2 }), seed: 2 });
  t.not(other.length, 0);
  t.ok(
    isRefused(Buffer.concat([other.subarray(0, -66), good.subarray(-66)])),
    'the seal of another manifest',
  );
  t.ok(isRefused(Buffer.concat([good, Buffer.from(' ')])), 'an extra byte');
});

t.test('losses of evaluations keep their bits, on which the end of a training depends', async (t) => {
  const [evalLosses, bestEvalLoss] = [{ validation: 0.1 + 0.2, code: 1 / 3 }, Number.MIN_VALUE];
  const earlyStopping = { best_eval_loss: bestEvalLoss, best_step: 3, evaluations_without_improvement: 2 };
  const manifest = {
    ...testManifest({ numels: [60], ranks: 1 }),
    eval_losses: evalLosses,
    early_stopping: earlyStopping,
  };
  t.match(parseManifest(encodeManifest(manifest)), {
    eval_losses: evalLosses,
    early_stopping: earlyStopping,
  });
  const damaged = { ...manifest, early_stopping: { ...earlyStopping, best_step: 0 } };
  t.throws(() => parseManifest(encodeManifest(damaged)), { code: 'manifest_invalid' });
  const texts = { ...manifest, eval_losses: { code: '1' as unknown as number } };
  t.throws(() => parseManifest(encodeManifest(texts)), { code: 'manifest_invalid', message: /eval_losses/ });
});

t.test('the version digit cannot turn a sealed manifest into an unsealed one', async (t) => {
  const text = encodeManifest(testManifest({ numels: [60], ranks: 1 })).toString();
  for (const version of [1, 2, 3, 4, 5, 6, 7, 8]) {
    const bytes = Buffer.from(
      text.replace(`"format_version":${FORMAT_VERSION}`, `"format_version":${version}`),
    );
    t.throws(() => parseManifest(bytes), { code: 'manifest_invalid' }, `${version}`);
  }
});

/** Changes the shards, scaler or schedule of a manifest. */
const ofShards = (changes: object) => (m: Manifest) => ({
  ...m,
  shards: m.shards.map((shard) => ({ ...shard, ...changes })),
});
const ofParams = (changes: object) => (m: Manifest) => ({
  ...m,
  params: m.params.map((param) => ({ ...param, ...changes })),
});
const ofSharding = (changes: object) => (m: Manifest) => ({ ...m, sharding: { ...m.sharding, ...changes } });
const ofScaler = (changes: object) => (m: Manifest) => ({
  ...m,
  loss_scaler: { ...m.loss_scaler, ...changes },
});
const ofSchedule = (changes: object) => (m: Manifest) => ({
  ...m,
  lr_schedule: { ...m.lr_schedule, ...changes },
});
t.test('a malformed manifest is refused with the location of the problem', async (t) => {
  const spoil: [string, (manifest: Manifest) => object | null, RegExp][] = [
    ['another version', (m) => ({ ...m, format_version: 4 }), /\/format_version/],
    ['a field is missing', ({ seed: _, ...m }) => m, /seed/],
    ['an extra field', (m) => ({ ...m, extra: 1 }), /\/extra is unknown/],
    ['a bad digest', (m) => ({ ...m, state_digest: 'xyz' }), /\/state_digest/],
    ['an unknown optimizer', (m) => ({ ...m, optimizer: 'adamax' }), /\/optimizer/],
    ['an unknown state', (m) => ({ ...m, states: ['master', 'velocity'] }), /\/states\/1/],
    ['a state twice', (m) => ({ ...m, states: ['master', 'exp_avg', 'exp_avg'] }), /\/states/],
    ['no master', (m) => ({ ...m, states: ['exp_avg'] }), /master/],
    ['half a loss scaler', (m) => ({ ...m, loss_scaler: { scale: 2 } }), /\/loss_scaler/],
    ['no parameters', (m) => ({ ...m, params: [] }), /\/params/],
    ['no shards', (m) => ({ ...m, shards: [] }), /\/shards/],
    [
      'a file outside the directory',
      (m) => ({ ...m, shards: m.shards.map((s) => ({ ...s, file: '../x' })) }),
      /\/shards\/0\/file/,
    ],
    [
      'an extra checksum',
      (m) => ({ ...m, shards: m.shards.map((s) => ({ ...s, crc32c: 'e3069283'.repeat(2) })) }),
      /2 checksums/,
    ],
    ['fewer bytes', ofShards({ bytes: 72 }), /shard-0.* has 8 bytes of the 1200 that rank 0 owns/],
    ['a longer header', ofShards({ data_begin: 68 }), /has 1196 bytes of the 1200/],
    ['no header', ofShards({ data_begin: 0 }), /\/data_begin/],
    ['an extra shard', (m) => ({ ...m, shards: [...m.shards, ...m.shards] }), /2 shards of 1 ranks/],
    ['more ranks', (m) => ({ ...m, world_size: 2 ** 50 }), /1 shards of 1125899906842624 ranks/],
    ['a parameter twice', (m) => ({ ...m, params: [...m.params, ...m.params] }), /p0 occurs twice/],
    ['more elements', ofParams({ numel: 101 }), /has 1200 bytes of the 1212/],
    ['another part', ofParams({ frozen: true }), /has 1200 bytes of the 400/],
    ['an expert set out of range', ofParams({ expert_set: 1 }), /p0 is of set 1 of 1 sets of experts/],
    [
      'fewer ranks than expert sets',
      ofSharding({ expert_sets: 2 }),
      /1 ranks are not a multiple of 2 expert sets/,
    ],
    ['zero block elements', ofSharding({ block_elements: 0 }), /\/sharding\/block_elements/],
    ['zero bucket blocks', ofSharding({ bucket_blocks: 0 }), /\/sharding\/bucket_blocks/],
    ['a fractional step', (m) => ({ ...m, step: 1.5 }), /\/step/],
    ['a negative step', (m) => ({ ...m, step: -1 }), /\/step/],
    ['no ranks and no id', (m) => ({ ...m, world_size: 0, id: '' }), /\/id.*\/world_size/],
    ['another SHA-256', ofShards({ sha256: 'xyz' }), /\/shards\/0\/sha256/],
    ['another CRC', ofShards({ crc32c: 'xyz' }), /\/shards\/0\/crc32c/],
    ['half a CRC', ofShards({ crc32c: 'e306' }), /0.5 checksums/],
    ['a loss scale of zero', ofScaler({ scale: 0 }), /\/loss_scaler\/scale/],
    [
      'an overflow before the first iteration',
      ofScaler({ last_overflow_iteration: -2 }),
      /\/last_overflow_iteration/,
    ],
    ['a negative override', (m) => ({ ...m, overrides: [{ step: 1, lr: -1 }] }), /\/overrides\/0\/lr/],
    [
      'an override with scale zero',
      (m) => ({ ...m, overrides: [{ step: 1, loss_scale: 0 }] }),
      /\/overrides\/0\/loss_scale/,
    ],
    ['a negative start', ofSchedule({ warmup_start_lr: -1 }), /\/lr_schedule\/warmup_start_lr/],
    ['a negative end', ofSchedule({ min_lr: -1 }), /\/lr_schedule\/min_lr/],
    ['null', () => null, /malformed/],
  ];
  for (const [name, change, message] of spoil) {
    const changed = change(testManifest({ numels: [100], ranks: 1 }));
    const bytes = changed === null ? encode(null) : seal(changed);
    t.throws(() => parseManifest(bytes), { code: 'manifest_invalid', message }, name);
  }
  t.throws(() => parseManifest(encode({ ...testManifest({ numels: [100], ranks: 1 }), format_version: 3 })), {
    message: /\/format_version/,
  });
  t.throws(() => parseManifest(Buffer.from('{"format_ver')), {
    code: 'manifest_invalid',
    message: /not JSON/,
  });
  t.throws(() => parseManifest(Buffer.alloc(0)), { code: 'manifest_invalid' });
  t.equal(CHUNK_BYTES, 4 * 1024 * 1024);
});
