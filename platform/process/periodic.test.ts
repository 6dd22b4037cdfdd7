import t from 'tap';
import { Periodic } from './periodic.js';

t.test('work is repeated after a failure, which is reported', async (t) => {
  const reported: unknown[] = [];
  let times = 0;
  await new Promise<void>((resolve) => {
    const periodic = new Periodic(
      async () => {
        times += 1;
        if (times === 1) throw new Error('once');
        void periodic.close().then(resolve);
      },
      1,
      (error) => reported.push(error),
    );
  });
  t.match(reported, [{ message: 'once' }]);
  t.equal(times, 2, 'but not after close');
});

t.test('close waits for the work in progress, and ends the pause', async (t) => {
  let finish: () => void = () => undefined;
  let done = false;
  const periodic = new Periodic(
    () =>
      new Promise<void>((resolve) => {
        finish = () => {
          done = true;
          resolve();
        };
      }),
    3_600_000,
    () => undefined,
  );
  const closed = periodic.close();
  finish();
  await closed;
  await periodic.close();
  t.ok(done);
});
