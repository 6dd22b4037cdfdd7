import t from 'tap';
import { Slots } from './slots.js';

/** Begins a task that ends when it is told to. */
function begin(slots: Slots, owner: string, signal = new AbortController().signal) {
  const task: { hasBegun: boolean; end(): void } = { hasBegun: false, end: () => undefined };
  const done = slots.run(owner, signal, async () => {
    task.hasBegun = true;
    await new Promise<void>((resolve) => (task.end = resolve));
  });
  return { task, done };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

t.test('an owner leaves a slot to the others, and owners take turns', async (t) => {
  const slots = new Slots(2);
  const greedy = [0, 1, 2].map(() => begin(slots, 'greedy'));
  const modest = [0, 1].map(() => begin(slots, 'modest'));
  const begun = () => [...greedy, ...modest].map(({ task }) => task.hasBegun);
  await turn();
  t.same(begun(), [true, false, false, true, false]);
  greedy[0]?.task.end();
  await turn();
  t.same(begun(), [true, true, false, true, false]);
  t.equal(slots.taken, 2);
  for (let n = 0; n < 4; n += 1) {
    for (const { task } of [...greedy, ...modest]) task.end();
    await turn();
  }
  await Promise.all([...greedy, ...modest].map(({ done }) => done));
  t.equal(slots.taken, 0);
});

t.test('an aborted task is not begun', async (t) => {
  const slots = new Slots(1);
  const running = begin(slots, 'a');
  const abort = new AbortController();
  const leaving = begin(slots, 'a', abort.signal);
  const next = begin(slots, 'a');
  abort.abort(new Error('enough'));
  await t.rejects(leaving.done, { message: 'enough' });
  await t.rejects(
    slots.run('a', abort.signal, async () => undefined),
    { message: 'enough' },
  );
  running.task.end();
  await turn();
  t.same([leaving.task.hasBegun, next.task.hasBegun], [false, true]);
});
