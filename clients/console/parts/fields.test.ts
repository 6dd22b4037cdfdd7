import { signal } from '@preact/signals';
import t from 'tap';
import { Fields } from './fields.js';

t.test('errors stand at their fields, once', async (t) => {
  const fault = (pointer: string) => ({ pointer, message: pointer });
  const faults = ['/model/config/x', '/train/adapter/rank', '/train/adapter/dropout', '/zero', '/trainer'];
  const answer = { code: 'validation_failed', message: 'no', fields: faults.map(fault) };
  const fields = new Fields(signal(answer));
  const hides = [['model'], ['train', 'adapter'], ['train', 'adapter', 'rank']].map((path) =>
    fields.show(path),
  );
  const at = (...path: string[]) => fields.errorsAt(path).map(({ pointer }) => pointer);
  t.strictSame(at('model'), ['/model/config/x']);
  t.strictSame(at('train', 'adapter'), ['/train/adapter/dropout']);
  t.strictSame(at('train', 'adapter', 'rank'), ['/train/adapter/rank']);
  t.strictSame(at('train'), [], 'a name that begins the same');
  t.strictSame(fields.rest.value, { ...answer, fields: ['/zero', '/trainer'].map(fault) });
  hides[2]?.();
  t.strictSame(at('train', 'adapter'), ['/train/adapter/rank', '/train/adapter/dropout']);
  for (const hide of hides) hide();
  t.strictSame(fields.rest.value, answer);
});

t.test('an accepted form has no error', async (t) => {
  const fields = new Fields(signal(null));
  fields.show(['name']);
  t.equal(fields.rest.value, null);
  t.strictSame(fields.errorsAt(['name']), []);
});
