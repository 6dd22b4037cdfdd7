import t from 'tap';
import { savePace, youngDaly } from './save-pace.js';

const DAY = 86_400;

function paced(checkpoint: { every_seconds?: number; auto?: true; every_steps?: number }, rate = 1 / DAY) {
  let seconds = 100;
  const pace = savePace({
    checkpoint: { on_busy: 'skip', keep: { last: 3, best: 0 }, ...checkpoint },
    failures_per_second: rate,
    now: () => seconds,
  });
  return {
    pace,
    /** Seconds until a save is due. */
    wait: () => {
      const from = seconds;
      while (!pace.isDue()) seconds++;
      return seconds - from;
    },
  };
}

t.test('every_seconds counts from the last save', async (t) => {
  const { pace, wait } = paced({ every_seconds: 7 });
  t.equal(wait(), 7);
  t.equal(wait(), 0, 'until it was saved');
  pace.saved(3);
  t.equal(wait(), 7, 'regardless of its cost');
  pace.notSaved();
  t.equal(wait(), 7, 'a save that failed begins the interval anew');
});

t.test('every_steps alone ignores the clock', async (t) => {
  t.equal(paced({ every_steps: 5 }).pace.isDue(), false);
});

t.test("auto is Young's interval for the measured cost", async (t) => {
  t.equal(youngDaly(2, 1 / 900), 60);
  t.equal(youngDaly(0, 1 / 900), 1, 'never without a pause');
  t.equal(youngDaly(1e9, 1 / DAY), 3600, 'at most one hour');
  const { pace, wait } = paced({ auto: true }, 1 / 800);
  t.equal(wait(), 40, 'the default cost is one second');
  pace.saved(0.25);
  t.equal(wait(), 20);
  pace.saved(0.65);
  t.equal(wait(), 24, 'a quarter of the way from 0.25 to 0.65');
});
