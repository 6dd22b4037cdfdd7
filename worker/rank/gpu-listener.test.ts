import t from 'tap';
import { GpuListener } from './gpu-listener.js';
import { withXids } from './xids.js';

const failed = (code: string) => ({ code, message: 'a call failed' });

t.test('what the driver reported says whose doing an error was', async (t) => {
  const code = (from: string, ...xids: number[]) => withXids(failed(from), xids).code;
  t.equal(code('gpu_fault', 31, 43), 'gpu_fault', 'a program did it');
  t.equal(code('gpu_fault', 31, 48), 'gpu_memory_fault', 'memory did it, whatever the program noticed');
  t.equal(code('device_failed', 79), 'gpu_lost');
  t.equal(code('comm_timeout', 45, 119), 'gpu_lost', 'others would be blamed for it');
  t.equal(code('device_failed', 4711), 'device_failed', 'nobody knows what it means');
  t.equal(code('shard_corrupt', 63), 'shard_corrupt', 'no GPU has a part in it');
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
  const heard = new GpuListener(
    () => xids.splice(0),
    (line) => lines.push(line),
    () => clock.ms,
  );
  let gone: { code?: string; message: string } | null = null;
  heard.gone.catch((error) => {
    gone = error;
  });
  const listen = async (ms: number, step: number, ...fresh: number[]) => {
    clock.ms = ms;
    xids.push(...fresh);
    heard.listen(step);
    await Promise.resolve();
    return gone;
  };
  return { heard, lines, xids, listen };
}

t.test('what was heard long before the failure explains it, and so does what comes with it', async (t) => {
  const { heard, lines, xids, listen } = listener();
  await listen(0, 3, 63);
  t.same(lines, [
    "the driver reports of this rank's GPU: Xid 63: a part of its memory is to be replaced by spare memory",
  ]);
  xids.push(48);
  t.match(heard.explain(failed('device_failed')), {
    code: 'gpu_memory_fault',
    message: /; Xid 63: .*; Xid 48: /,
  });
});

t.test('a rank that waits for a GPU which went silent is not waited for', async (t) => {
  const { listen } = listener();
  t.equal(await listen(0, 3, 79), null);
  t.equal(await listen(29_999, 3), null, 'an error of CUDA may still come');
  t.match(await listen(30_000, 3), { code: 'gpu_lost', message: 'the rank waited for its GPU for 30000 ms' });
});

t.test('a rank that goes on after a report is let be', async (t) => {
  const { listen } = listener();
  await listen(0, 3, 120);
  t.equal(await listen(29_000, 4), null);
  t.equal(await listen(58_000, 4), null, 'the step may be a long one');
  const other = listener();
  await other.listen(0, 3, 63, 74);
  t.equal(await other.listen(1_000_000, 3), null, 'after these the GPU answers');
});
