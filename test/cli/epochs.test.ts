/** The command line and jobs whose number of steps is not known yet. */
import t from 'tap';
import { smallSpec } from '../../api/testing/stack.js';
import type { Job } from '../../contracts/index.js';
import { start } from './command-line.js';

t.test('a job with epochs, before its samples are counted', async (t) => {
  const { zerofleet, file } = await start(t);
  const lines = await file('lines.jsonl', '{"text": "to be or not to be"}\n'.repeat(500));
  const { out: dataset } = await zerofleet(['datasets', 'upload', lines, '--format', 'jsonl']);
  const train = { epochs: 2, global_batch_size: 'auto', sequence_length: 8 };
  const stdin = JSON.stringify({ ...smallSpec(dataset), train });
  t.match(await zerofleet(['submit', '-', '--dry-run'], { stdin }), {
    code: 0,
    out: /^sequences +known once a worker has prepared the data\ntokens +known once .*\nepochs +2.00\nduration +known once/,
  });
  const { out: id } = await zerofleet(['submit', '-'], { stdin });
  t.match(await zerofleet(['get', id]), {
    out: /\nprogress +step 0, 2 epochs; the number of steps is known once a worker /,
  });
  t.match(await zerofleet(['list']), { out: /\njob_\w+ .* queued +– +– / });
  const { spec } = JSON.parse((await zerofleet(['get', id, '--json'])).out) as Job;
  t.match(spec.train, { epochs: 2, global_batch_size: 8, micro_batch_size: 2 });
});
