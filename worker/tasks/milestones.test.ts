import t from 'tap';
import { Milestones } from './milestones.js';

t.test('what is slow is told in at most 19 parts, what is fast not at all', async (t) => {
  const told = (ms: number) => {
    let time = 0;
    const milestones = new Milestones(1000, () => time);
    return Array.from({ length: 1000 }, (_, index) => index + 1).filter((done) => {
      time += ms;
      return milestones.reached(done);
    });
  };
  t.same(
    told(100),
    Array.from({ length: 19 }, (_, index) => 50 * (index + 1)),
  );
  t.same(told(10), [100, 200, 300, 400, 500, 600, 700, 800, 900]);
  t.same(told(0.9), []);
});
