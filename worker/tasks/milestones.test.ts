import t from 'tap';
import { Milestones } from './milestones.js';

t.test('slow work reports at most 19 times, fast work not at all', async (t) => {
  const reported = (ms: number) => {
    let time = 0;
    const milestones = new Milestones(1000, () => time);
    return Array.from({ length: 1000 }, (_, index) => index + 1).filter((done) => {
      time += ms;
      return milestones.reached(done);
    });
  };
  t.same(
    reported(100),
    Array.from({ length: 19 }, (_, index) => 50 * (index + 1)),
  );
  t.same(reported(10), [100, 200, 300, 400, 500, 600, 700, 800, 900]);
  t.same(reported(0.9), []);
});
