import t from 'tap';
import { GpuListener } from './gpu-listener.js';
import { withXids } from './xids.js';

const failed = (code: string) => ({ code, message: 'a call failed' });

t.test("the driver's XIDs determine the cause of an error", async (t) => {
  const code = (from: string, ...xids: number[]) => withXids(failed(from), xids).code;
  t.equal(code('gpu_fault', 31, 43), 'gpu_fault', 'caused by a program');
  t.equal(code('gpu_fault', 31, 48), 'gpu_memory_fault', 'caused by memory, whatever the program reported');
  t.equal(code('device_failed', 79), 'gpu_lost');
  t.equal(code('comm_timeout', 45, 119), 'gpu_lost', 'otherwise other ranks would be reported as the cause');
  t.equal(code('device_failed', 4711), 'device_failed', 'an unknown XID changes nothing');
  t.equal(code('shard_corrupt', 63), 'shard_corrupt', 'not an error of a GPU');
  for (const xid of [48, 63, 64, 94, 95]) t.equal(code('device_failed', xid), 'gpu_memory_fault', `${xid}`);
  for (const xid of [74, 79, 119, 120]) t.equal(code('device_failed', xid), 'gpu_lost', `${xid}`);
});

t.test('the error names every XID once', async (t) => {
  const { message } = withXids(failed('device_failed'), [79, 4711, 79]);
  t.equal(message, 'a call failed; Xid 79: the GPU has fallen off the bus; Xid 4711');
  t.equal(withXids(failed('device_failed'), []).message, 'a call failed');
});

function listener() {
  const xids: number[] = [];
  const lines: string[] = [];
  const clock = { ms: 0 };
  const gpu = new GpuListener(
    () => xids.splice(0),
    (line) => lines.push(line),
    () => clock.ms,
  );
  let lost: { code?: string; message: string } | null = null;
  gpu.lost.catch((error) => {
    lost = error;
  });
  const listen = async (ms: number, step: number, ...fresh: number[]) => {
    clock.ms = ms;
    xids.push(...fresh);
    gpu.listen(step);
    await Promise.resolve();
    return lost;
  };
  return { gpu, lines, xids, listen };
}

t.test('XIDs from before the failure and from its time explain it', async (t) => {
  const { gpu, lines, xids, listen } = listener();
  await listen(0, 3, 63);
  t.same(lines, [
    "the driver reports for this rank's GPU: Xid 63: ECC page retirement or row remapping recorded",
  ]);
  xids.push(48);
  t.match(gpu.explain(failed('device_failed')), {
    code: 'gpu_memory_fault',
    message: /; Xid 63: .*; Xid 48: /,
  });
});

t.test('a rank that waits for a silent GPU is ended', async (t) => {
  const { listen } = listener();
  t.equal(await listen(0, 3, 79), null);
  t.equal(await listen(29_999, 3), null, 'a CUDA error may still come');
  t.match(await listen(30_000, 3), { code: 'gpu_lost', message: 'the rank waited for its GPU for 30000 ms' });
});

t.test('a rank that continues after an XID is left alone', async (t) => {
  const { listen } = listener();
  await listen(0, 3, 120);
  t.equal(await listen(29_000, 4), null);
  t.equal(await listen(58_000, 4), null, 'the step may be a long one');
  const other = listener();
  await other.listen(0, 3, 63, 74);
  t.equal(await other.listen(1_000_000, 3), null, 'the GPU answers after these');
});
