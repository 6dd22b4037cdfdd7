import type { Signal } from '@preact/signals';
import type { Checkpoint } from '../../../../contracts/types.js';
import { ago, bytes, count, loss, ranks } from '../../parts/format.js';
import type { Mark } from './marks.js';

interface TimelineProps {
  /** Highest step first. */
  checkpoints: readonly Checkpoint[];
  marks: ReadonlyMap<string, readonly Mark[]>;
  total_steps: number | null;
  /** Id of the chosen checkpoint. */
  chosen: Signal<string | null>;
}

/** Checkpoints between the first and the last step. The arrow keys go from one to the next. */
export function Timeline({ checkpoints, marks, total_steps, chosen }: TimelineProps) {
  const ordered = checkpoints.toReversed();
  const end = Math.max(1, total_steps ?? 0, ordered.at(-1)?.step ?? 0);
  const at = ordered.findIndex(({ id }) => id === chosen.value);
  const current = ordered[at] ?? null;
  const move = (event: KeyboardEvent) => {
    const last = ordered.length - 1;
    const from = at < 0 ? last + 1 : at;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    chosen.value = ordered[Math.min(last, Math.max(0, to))]?.id ?? null;
  };
  return (
    <div class="timeline">
      <div
        role="listbox"
        aria-label="Checkpoints by step"
        tabIndex={0}
        aria-activedescendant={current ? optionOf(current) : undefined}
        onKeyDown={move}
      >
        <svg role="presentation">
          <line x1="0" y1="50%" x2="100%" y2="50%" />
          {ordered.map((checkpoint) => (
            <Point
              key={checkpoint.id}
              checkpoint={checkpoint}
              marks={marks.get(checkpoint.id) ?? []}
              x={`${1 + (98 * checkpoint.step) / end}%`}
              isChosen={checkpoint === current}
              onChoose={() => (chosen.value = checkpoint.id)}
            />
          ))}
        </svg>
      </div>
      <p class="muted small">
        {current === null
          ? '◎ newest, ◆ best, ⚲ pinned, ✕ damaged. Arrow keys choose one.'
          : describe(current, marks.get(current.id) ?? [])}
      </p>
    </div>
  );
}

const optionOf = ({ id }: Checkpoint) => `point-${id}`;

function describe(checkpoint: Checkpoint, marks: readonly Mark[]): string {
  const { step, world_size, eval_losses = {}, committed_at } = checkpoint;
  const losses = Object.entries(eval_losses).map(([name, value]) => `${name} ${loss(value)}`);
  const facts = [ranks(world_size), bytes(checkpoint.bytes), ...losses, ago(committed_at)];
  return [`step ${count(step)}`, ...marks, ...facts].join(' · ');
}

interface PointProps {
  checkpoint: Checkpoint;
  marks: readonly Mark[];
  x: string;
  isChosen: boolean;
  onChoose: () => void;
}

/** Marks have shapes of their own, for those who do not see colours. */
function Point({ checkpoint, marks, x, isChosen, onChoose }: PointProps) {
  const has = (mark: Mark) => marks.includes(mark);
  const option = {
    role: 'option',
    id: optionOf(checkpoint),
    'aria-selected': isChosen,
    onClick: onChoose,
  } as const;
  return (
    <svg x={x} y="50%" overflow="visible" {...option}>
      <title>{describe(checkpoint, marks)}</title>
      <rect class="target" x="-9" y="-18" width="18" height="36" />
      {has('pinned') && <path class="outline" d="M0 -4V-16M-4 -16H4" />}
      {has('newest') && <circle class="outline" r="9" />}
      {has('damaged') ? (
        <path class="cross" d="M-5 -5L5 5M-5 5L5 -5" />
      ) : has('best') ? (
        <path class="fill" d="M0 -7L7 0L0 7L-7 0Z" />
      ) : (
        <circle class="fill" r="5" />
      )}
    </svg>
  );
}
