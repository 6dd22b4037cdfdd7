import t from 'tap';
import { heartbeat } from '../../testing/heartbeat.js';
import { SystemWatch } from './system-watch.js';

const at = (uptimeSeconds: number, cpuSeconds: number, sentBytes: number, memoryBytes = 100) =>
  heartbeat({
    uptime_seconds: uptimeSeconds,
    cpu_seconds: cpuSeconds,
    sent_bytes: sentBytes,
    memory_bytes: memoryBytes,
  });

t.test('the mean use of each rank since the previous measurement', async (t) => {
  const system = new SystemWatch(2);
  system.measured(0, at(1, 1, 0));
  system.measured(0, at(3, 4, 5000, 300));
  t.equal(system.take(), null, 'rank 1 has not reported');
  system.measured(1, at(1, 0, 0));
  t.equal(system.take(), null, 'rank 1 has reported once');
  system.measured(1, at(2, 0.25, 100));
  t.same(system.take(), { cpu: [1.5, 0.25], memory_bytes: [300, 100], sent_bytes: [2500, 100] });
  t.equal(system.take(), null, 'no rank has reported since');
  for (const rank of [0, 1]) system.measured(rank, at(6, 10, 6000));
  t.equal(system.take(), null, 'measurements are rare');
  for (const rank of [0, 1]) system.measured(rank, at(9, 14, 6000));
  t.match(system.take(), { cpu: [1.67, 1.96], sent_bytes: [167, 843] });
});

t.test('the mean use of each GPU over its heartbeats', async (t) => {
  const system = new SystemWatch(2);
  const measure = (rank: number, seconds: number, busy: number | null) =>
    system.measured(rank, { ...at(seconds, 0, 0), gpu_busy: busy });
  for (const rank of [0, 1]) measure(rank, 1, 0);
  measure(0, 2, 0.5);
  measure(1, 2, 1);
  measure(1, 3, 1);
  t.same(system.take()?.gpu, [0.25, 0.67]);
  for (const rank of [0, 1]) measure(rank, 9, rank === 0 ? null : 1);
  t.equal(system.take()?.gpu, undefined, 'the GPU of rank 0 is not measured');
  for (const rank of [0, 1]) measure(rank, 15, 0.125);
  t.same(system.take()?.gpu, [0.13, 0.13], 'each heartbeat counts once');
});

t.test('a world of many ranks has the use of the first 16', async (t) => {
  const system = new SystemWatch(4096);
  for (let rank = 0; rank < 4096; rank++)
    for (const seconds of [1, 2]) system.measured(rank, at(seconds, seconds, 0));
  t.equal(system.take()?.cpu.length, 16);
});
