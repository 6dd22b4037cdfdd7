import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { JobLog } from '../../../contracts/types.js';
import { client, type Fault, faultOf } from '../app/connection.js';
import { Empty } from '../parts/empty.js';
import { clock } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import type { LiveRun } from './live-run.js';
import { type LogFilter, ranksIn, shownLines, withLines } from './log-lines.js';
import { isRefusal, persistently } from './persistently.js';

const GATHER_MS = 200;

export function Logs({ run }: { run: LiveRun }) {
  const lines = useSignal<readonly JobLog[]>([]);
  const fault = useSignal<Fault | null>(null);
  const filter = useSignal<LogFilter>({ text: '', rank: 'all', stream: 'all' });
  const follow = useSignal(true);
  const list = useRef<HTMLOListElement>(null);
  const id = run.job.value?.id ?? '';
  useEffect(() => {
    const closing = new AbortController();
    const waiting: JobLog[] = [];
    let isAnew = true;
    const timer = setInterval(() => {
      if (waiting.length === 0) return;
      lines.value = withLines(isAnew ? [] : lines.value, waiting.splice(0));
      isAnew = false;
    }, GATHER_MS);
    const read = async () => {
      waiting.length = 0;
      isAnew = true;
      for await (const line of client.jobs.followLogs(id, { signal: closing.signal })) waiting.push(line);
    };
    // The view of the run tells of a server that is away.
    void persistently(read, closing.signal, (error) => {
      if (isRefusal(error)) fault.value = faultOf(error);
    });
    return () => {
      closing.abort();
      clearInterval(timer);
    };
  }, [id]);
  const shown = useMemo(() => shownLines(lines.value, filter.value), [lines.value, filter.value]);
  useEffect(() => {
    if (follow.value && list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  }, [shown, follow.value]);
  const set = (changed: Partial<LogFilter>) => {
    filter.value = { ...filter.value, ...changed };
  };
  const notice = fault.value && <Notice fault={fault.value} />;
  if (lines.value.length === 0) return notice ?? <Empty title="No line was written yet." />;
  return (
    <section class="card">
      {notice}
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <input
          type="search"
          aria-label="Search in the lines"
          placeholder="Search  /"
          onInput={(event) => set({ text: event.currentTarget.value })}
        />
        <select aria-label="Rank" onChange={(event) => set({ rank: event.currentTarget.value })}>
          <option value="all">all ranks</option>
          {ranksIn(lines.value).map((rank) => (
            <option key={rank} value={rank}>
              {rank === 'worker' ? rank : `rank ${rank}`}
            </option>
          ))}
        </select>
        <select
          aria-label="Stream"
          onChange={(event) => set({ stream: event.currentTarget.value as LogFilter['stream'] })}
        >
          {['all', 'stdout', 'stderr', 'worker'].map((stream) => (
            <option key={stream} value={stream}>
              {stream === 'all' ? 'all streams' : stream}
            </option>
          ))}
        </select>
        <label>
          <input
            type="checkbox"
            checked={follow.value}
            onChange={(event) => (follow.value = event.currentTarget.checked)}
          />
          Follow
        </label>
      </form>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <ol class="log" ref={list} tabIndex={0} aria-label="Log">
        {shown.map((line) => (
          <li key={line.seq} class={line.stream}>
            <time class="muted">{clock(line.at)}</time> <span class="muted">{line.rank ?? 'worker'}</span>{' '}
            {line.message}
            {line.dropped > 0 && <em class="muted"> {line.dropped} lines before it were dropped</em>}
          </li>
        ))}
      </ol>
    </section>
  );
}
