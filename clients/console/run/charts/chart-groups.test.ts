import t from 'tap';
import { formatOf, GROUPS } from './chart-groups.js';
import { namesIn, PHASES } from './curve.js';

t.test('each value has one chart; evaluations stand with the loss, phases together', async (t) => {
  const names = ['loss', 'eval code', 'aux_loss', 'lr', 'memory', 'ranks', 'skipped_steps', ...PHASES];
  names.push(
    ...['margin', 'accuracy', 'reward_chosen', 'reward_rejected', 'log_prob_chosen', 'log_prob_rejected'],
  );
  names.push(...['cpu of rank 0', 'gpu of rank 0', 'memory_bytes of rank 1', 'sent_bytes of rank 1']);
  const values = Object.fromEntries(names.map((name) => [name, 1]));
  for (const name of namesIn([{ values }])) t.equal(GROUPS.filter(({ has }) => has(name)).length, 1, name);
  const [losses] = GROUPS;
  t.ok(losses?.has('eval code'));
});

t.test('a value is drawn alike wherever it is', async (t) => {
  t.strictSame(formatOf('memory'), { unit: 'bytes' });
  t.equal(formatOf('lr').format?.(0.00012345), '0.0001234');
  t.strictSame(formatOf('none of them'), {});
});
