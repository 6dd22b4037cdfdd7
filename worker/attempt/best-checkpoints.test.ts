/** Tests of the checkpoints with the lowest evaluation losses. */
import t from 'tap';
import { Fleet } from '../testing/fleet.js';

const STEPS = 40;
const EVERY = 5;

t.test('the best checkpoints are kept, also by a worker that did not evaluate them', async (t) => {
  const eval_losses = { 5: 3, 10: 1.25, 15: 2, 20: 4, 25: 5, 30: 4, 35: 5, 40: 3 };
  const fleet = await Fleet.start({ ranks: { slow: { from: 22, ms: 300 }, eval_losses } });
  t.teardown(() => fleet.close());
  const first = await fleet.agent();
  const id = await fleet.submit({
    steps: STEPS,
    checkpoint: { every_steps: EVERY, on_busy: 'wait', keep: { last: 1, best: 2 } },
    train: { eval_every_steps: EVERY },
    data: { validation_fraction: 0.1 },
    ranks: 2,
  });
  await fleet.until(id, ({ latest_checkpoint }) => latest_checkpoint?.step === 20);
  await first.close();
  await fleet.speedUp();
  await fleet.agent();
  await fleet.untilState(id, 'succeeded');
  const { data } = await fleet.store.listCheckpoints(id);
  t.strictSame(
    data.map(({ step, eval_loss }) => [step, eval_loss]),
    [
      [40, 3],
      [15, 2],
      [10, 1.25],
    ],
  );
});
