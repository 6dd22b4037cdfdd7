import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { Turns } from './turns.js';

t.test('work with the same key runs one after the other, also behind an error', async (t) => {
  const turns = new Turns(2, () => new Error('too many'));
  const log: string[] = [];
  const run = (key: string, name: string, error?: Error) =>
    turns.run(key, async () => {
      log.push(`${name} begins`);
      for (let turn = 0; turn < 3; turn += 1) await nextTurn();
      log.push(`${name} ends`);
      if (error !== undefined) throw error;
      return name;
    });
  const first = t.rejects(run('a', 'one', new Error('failed')), { message: 'failed' });
  const [second, other] = [run('a', 'two'), run('b', 'other')];
  await t.rejects(run('a', 'three'), { message: 'too many' });
  t.same(await Promise.all([second, other]), ['two', 'other']);
  await first;
  t.equal(await run('a', 'three'), 'three', 'there is room again');
  t.ok(log.indexOf('one ends') < log.indexOf('two begins'));
  t.ok(log.indexOf('other begins') < log.indexOf('one ends'), 'other keys do not wait');
});
