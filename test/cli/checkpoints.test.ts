import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { claimAndTrain } from '../../api/testing/training.js';
import { putTestCheckpoint } from '../../formats/testing/checkpoints.js';
import { start } from './command-line.js';

t.test('checkpoints', async (t) => {
  const { stack, zerofleet, dir } = await start(t);
  const job = await stack.createJob();
  await claimAndTrain(stack.store, job.id, { steps: 2 });
  const listed = await zerofleet(['checkpoints', job.id]);
  t.match(listed.out, /^CHECKPOINT +STEP[\s\S]*\nckpt_\w+ +2 +2 +39.0 MB +0+2 /);
  const id = /ckpt_\w+/.exec(listed.out)?.[0] ?? '';
  t.match(await zerofleet(['pin', id]), { out: `${id}  pinned` });
  t.match(await zerofleet(['pin', id, '--off']), { out: `${id}  not pinned` });
  t.match(await zerofleet(['verify', id]), {
    code: 1,
    out: /^MANIFEST.json +object_not_found/,
    err: /is damaged/,
  });
  const [checkpoint] = (await stack.store.listCheckpoints(job.id)).data;
  await putTestCheckpoint(stack.objects, checkpoint?.prefix ?? '', { numels: [10], ranks: 2 }, id);
  t.match(await zerofleet(['verify', id]), { code: 0, out: /^valid, 248 B read$/ });
  const folder = join(dir, 'backup');
  t.match(await zerofleet(['download', id, '-o', folder]), {
    code: 0,
    out: /backup: 3 files, .* checked by SHA-256$/,
  });
  t.same((await readdir(folder)).length, 3);
  t.match(await zerofleet(['download', id, '-o', folder, '--json']), { out: /"format":null/ });
  t.match(await zerofleet(['tensors', id]), {
    code: 0,
    out: /^TENSOR +SHAPE +STATES\n(.*\n)*p0 +10 +master, exp_avg, exp_avg_sq$/,
  });
  const tensor = join(dir, 'p0.safetensors');
  t.match(await zerofleet(['tensor', id, 'p0', '--state', 'exp_avg', '-o', tensor]), { code: 0 });
  t.equal((await readFile(tensor)).readFloatLE((await readFile(tensor)).length - 4), 19, 'the last element');
  t.match(await zerofleet(['set-tensor', id, 'p0', tensor, '--state', 'exp_avg']), {
    code: 1,
    err: /409 invalid_state.*pause it first/,
  });
  t.match(await zerofleet(['tensor', id, 'p1']), { code: 1, err: /404 tensor_not_found/ });
  t.match(await zerofleet(['download', id, '--format', 'safetensors']), {
    code: 1,
    err: /404 export_not_found/,
  });
  t.match(await zerofleet(['download', job.id]), {
    code: 1,
    err: /exported nothing; .*zerofleet export ckpt_/,
  });
  t.match(await zerofleet(['download', 'model']), { code: 1, err: /no job is named model/ });
  t.match(await zerofleet(['sample', id, 'To be']), { code: 1, err: /sample_timeout/ });
  t.match(await zerofleet(['fork', job.id]), { code: 0, out: /^job_\w+ +queued/ });
  t.match(await zerofleet(['fork', job.id, '-c', `ckpt_${'0'.repeat(26)}`]), {
    code: 1,
    err: /checkpoint_not_found/,
  });
});
