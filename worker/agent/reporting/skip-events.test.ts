import t from 'tap';
import type { SteppedMessage } from '../../../contracts/rank-protocol.js';
import { stepped } from '../../testing/stepped.js';
import { SkipEvents } from './skip-events.js';

let skippedSteps = 0;

function message(step: number, finite: boolean, lossScale: number): SteppedMessage {
  if (!finite) skippedSteps += 1;
  return stepped(step, { finite, loss_scale: lossScale, skipped_steps: skippedSteps });
}

t.beforeEach(() => {
  skippedSteps = 0;
});

t.test('a run of skipped steps is reported at its begin and after the scale was lowered', async (t) => {
  const events = new SkipEvents();
  const reported = [
    message(1, false, 64),
    message(2, false, 64),
    message(3, false, 32),
    message(4, true, 16),
    message(5, true, 16),
  ].map((stepped) => events.after(stepped));
  t.strictSame(reported, [
    [{ type: 'step.skipped', data: { step: 1, loss: 2, loss_scale: 64, skipped_steps: 1 } }],
    [],
    [],
    [{ type: 'loss_scale.lowered', data: { step: 4, from: 64, to: 16, skipped: 3, skipped_steps: 3 } }],
    [],
  ]);
});

t.test('without a lower scale only the skipped step is reported', async (t) => {
  const events = new SkipEvents();
  t.equal(events.after(message(1, false, 1)).length, 1);
  t.strictSame(events.after(message(2, true, 1)), []);
  t.strictSame(events.after(message(3, true, 1)), []);
});

t.test('a training that overflows in every second step does not flood its stream', async (t) => {
  const events = new SkipEvents();
  let reported = 0;
  for (let step = 1; step <= 20_000; step += 1) {
    reported += events.after(message(step, step % 2 === 0, 2 ** (20 - (step % 2)))).length;
  }
  // 16 one by one, then runs 32, 64, … 8192.
  t.equal(reported, 16 + 9);
});
