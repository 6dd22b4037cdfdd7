import t from 'tap';
import { MemoryWatch } from './memory-watch.js';

t.test('the most that one rank used since the last step', async (t) => {
  const memory = new MemoryWatch();
  t.equal(memory.take(), 0, 'no rank has reported');
  memory.measured(0, 100);
  memory.measured(1, 300);
  memory.measured(1, 200);
  t.equal(memory.take(), 300, 'a peak between two steps is kept');
  t.equal(memory.take(), 200, 'until the next step, which shows the use of now');
  memory.measured(0, 250);
  t.equal(memory.take(), 250);
  memory.measured(0, 50);
  t.equal(memory.take(), 250, 'the use at the last step belongs to the time since');
  t.equal(memory.take(), 200);
});
