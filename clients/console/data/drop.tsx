import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Fault, faultOf, isAborted } from '../app/connection.js';
import { Notice } from '../parts/notice.js';
import type { Report } from './upload.js';

interface DropProps {
  label: string;
  hint: string;
  send: (files: readonly File[], report: Report, signal: AbortSignal) => Promise<void>;
}

/** Area for dropped or chosen files, which are uploaded at once. */
export function Drop({ label, hint, send }: DropProps) {
  const share = useSignal<number | null>(null);
  const isOver = useSignal(false);
  const fault = useSignal<Fault | null>(null);
  const running = useMemo(() => ({ stop: new AbortController() }), []);
  useEffect(() => () => running.stop.abort(), [running]);
  const begin = async (files: readonly File[]) => {
    isOver.value = false;
    if (files.length === 0 || share.value !== null) return;
    share.value = 0;
    fault.value = null;
    running.stop = new AbortController();
    try {
      await send(files, (sent) => (share.value = sent), running.stop.signal);
    } catch (error) {
      if (!running.stop.signal.aborted && !isAborted(error)) fault.value = faultOf(error);
    } finally {
      share.value = null;
    }
  };
  const allowDrop = (event: DragEvent) => {
    event.preventDefault();
    isOver.value = true;
  };
  return (
    <section
      class={`card drop ${isOver.value ? 'over' : ''}`}
      aria-label={label}
      onDragOver={allowDrop}
      onDragLeave={() => (isOver.value = false)}
      onDrop={(event) => {
        event.preventDefault();
        void begin([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      {share.value === null ? (
        <label>
          <strong>{label}</strong> <span class="muted">{hint}</span>
          <input
            type="file"
            multiple
            onChange={({ currentTarget }) => {
              const files = [...(currentTarget.files ?? [])];
              currentTarget.value = '';
              void begin(files);
            }}
          />
        </label>
      ) : (
        <div class="title">
          <progress class="progress" max={1} value={share.value} aria-label="Sent" />
          <span>{share.value < 1 ? `${Math.floor(share.value * 100)} % sent` : 'The server checks it.'}</span>
          <button type="button" onClick={() => running.stop.abort()}>
            Stop
          </button>
        </div>
      )}
      {fault.value && <Notice fault={fault.value} onClose={() => (fault.value = null)} />}
    </section>
  );
}
