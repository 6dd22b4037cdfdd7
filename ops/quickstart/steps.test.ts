import t from 'tap';
import { chooseSteps } from './steps.js';

/** Metrics of steps with these durations in seconds. */
const steps = (...durations: number[]) =>
  durations.map((total, index) => ({
    step: index + 1,
    seconds: { total, data: 0, forward: 0, backward: 0, exchange: 0, optimizer: 0, gather: 0 },
  }));

t.test('the steps of both trainings take 50 s', async (t) => {
  t.equal(chooseSteps(steps(9, 9, 0.1, 0.1, 0.1)), 250, 'without the first steps');
  t.equal(chooseSteps(steps(1, 1, 0.5, 0.5, 0.5)), 50);
  t.equal(chooseSteps(steps(0.1, 0.1, 0.1, 0.1, 5)), 250, 'one slow step does not count');
});

t.test('the number is even and has bounds', async (t) => {
  for (const duration of [0.07, 0.11, 0.13, 0.77]) {
    const chosen = chooseSteps(steps(1, 1, duration, duration, duration));
    t.equal(chosen % 2, 0);
    t.ok(Math.abs(2 * chosen * duration - 50) <= 2 * duration, `${chosen} steps of ${duration} s`);
  }
  t.equal(chooseSteps(steps(9, 9, 9, 9)), 20);
  t.equal(chooseSteps(steps(1e-4, 1e-4, 1e-4)), 2_000);
  t.equal(chooseSteps([]), 20, 'without a measurement the run is short');
});
