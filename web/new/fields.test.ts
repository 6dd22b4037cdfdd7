import t from 'tap';
import { errorsAt, numberIn, unplacedErrors } from './fields.js';

t.test('errors stand at their fields, once', async (t) => {
  const fault = (pointer: string) => ({ pointer, message: pointer });
  const faults = ['/model/config/x', '/train/adapter/rank', '/train/adapter/dropout', '/zero'].map(fault);
  const shown = [['model'], ['train', 'adapter'], ['train', 'adapter', 'rank']];
  const at = (...path: string[]) => errorsAt(faults, path, shown).map(({ pointer }) => pointer);
  t.strictSame(at('model'), ['/model/config/x']);
  t.strictSame(at('train', 'adapter'), ['/train/adapter/dropout']);
  t.strictSame(at('train', 'adapter', 'rank'), ['/train/adapter/rank']);
  t.strictSame(unplacedErrors(faults, shown), [fault('/zero')]);
  t.strictSame(errorsAt([fault('/trainer')], ['train'], [['train']]), [], 'a name that begins the same');
});

t.test('numbers as they are entered', async (t) => {
  t.equal(numberIn(' 1e-3 '), 1e-3);
  t.equal(numberIn(' '), undefined);
  for (const text of ['1e', 'x', 'Infinity']) t.equal(numberIn(text), text);
});
