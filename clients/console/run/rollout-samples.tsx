import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { isFinal } from '../../../contracts/job-states.js';
import type { Job, Rollout } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { go, linkTo, route } from '../app/router.js';
import { CompleteInput } from '../parts/complete-input.js';
import { Empty } from '../parts/empty.js';
import { count } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { detailsOf, meanReward, rankOf, score, stepAfter, stepBefore, summaryOf } from './rollouts.js';

/** The newest step changes while the job runs. */
const REREAD_MS = 5_000;
/** Prompts that are shown at first, and that a button adds. */
const PROMPTS = 20;
/** Characters of a text before it is folded. */
const FOLDED = 300;

interface RolloutSamplesProps {
  job: Job;
  /** Steps that share samples. */
  length: number;
}

/** The samples of a step of reinforcement learning, with their rewards. */
export function RolloutSamples({ job: { id, state, progress }, length }: RolloutSamplesProps) {
  const asked = Number(route.value.query.get('step')) || null;
  const read = () => client.calls.rollout(id, asked ?? undefined);
  const { value, fault } = useLoaded(read, [id, asked], {
    every_ms: !isFinal(state) && asked === null ? REREAD_MS : 0,
  });
  // The page keeps its place while another step is read.
  const last = useRef<Rollout | null>(null);
  last.current = value.value ?? last.current;
  const isMissing = fault.value?.code === 'rollout_not_found';
  const rollout = fault.value === null ? last.current : null;
  const show = (step: number | null) =>
    go(linkTo(['runs', id], { tab: 'samples', step: step === null ? '' : String(step) }), { replace: true });
  return (
    <>
      <Steps
        shown={rollout?.step ?? asked}
        asked={asked}
        place={{ shown: rollout?.step ?? asked ?? 1, length, done: progress.step }}
        onShow={show}
      />
      {fault.value && !isMissing && <Notice fault={fault.value} />}
      {isMissing && (
        <Empty title={asked === null ? 'No step has samples yet.' : `Step ${asked} has no samples.`} />
      )}
      {rollout && (
        <>
          <p class="small muted" role="status">
            {summaryOf(rollout)}. Answers above the mean of their prompt are green, and become more likely.
          </p>
          <Groups key={rollout.step} groups={rollout.groups} />
        </>
      )}
    </>
  );
}

interface StepsProps {
  /** First step with the shown samples; null before it is known. */
  shown: number | null;
  /** The step of the address; null for the newest one. */
  asked: number | null;
  place: Parameters<typeof stepAfter>[0];
  onShow: (step: number | null) => void;
}

function Steps({ shown, asked, place, onShow }: StepsProps) {
  const before = stepBefore(place);
  const after = stepAfter(place);
  return (
    <div class="filters steps">
      <button type="button" disabled={before === null} onClick={() => onShow(before)}>
        Previous
      </button>
      <label>
        Step
        <CompleteInput
          type="number"
          min={1}
          value={String(shown ?? '')}
          onComplete={(written) => onShow(Number(written) >= 1 ? Math.floor(Number(written)) : null)}
        />
      </label>
      <button type="button" disabled={after === null} onClick={() => onShow(after)}>
        Next
      </button>
      <button type="button" disabled={asked === null} onClick={() => onShow(null)}>
        Newest
      </button>
    </div>
  );
}

type Group = Rollout['groups'][number];

function Groups({ groups }: { groups: readonly Group[] }) {
  const shown = useSignal(PROMPTS);
  const rest = groups.length - shown.value;
  return (
    <>
      {groups.slice(0, shown.value).map((group, at) => (
        <GroupCard key={at} group={group} />
      ))}
      {rest > 0 && (
        <div class="filters">
          <button type="button" onClick={() => (shown.value += PROMPTS)}>
            Show more of the {count(rest)} other prompts
          </button>
        </div>
      )}
    </>
  );
}

const RANKS = { above: 'good', below: 'warn', equal: '' } as const;
const MEANINGS = {
  above: 'above the mean of the prompt, so it becomes more likely',
  below: 'below the mean of the prompt, so it becomes less likely',
  equal: 'at the mean of the prompt, so it teaches nothing',
} as const;

function GroupCard({ group }: { group: Group }) {
  const { line, prompt, samples } = group;
  return (
    <section class="card rollout">
      <h2>
        <LongText text={prompt} />
      </h2>
      <p class="muted small">
        line {count(line)} · mean reward {score(meanReward(samples))}
      </p>
      <ol aria-label="Answers with their rewards">
        {samples.map((sample, at) => {
          const rank = rankOf(sample, group);
          return (
            <li key={at}>
              <p class="small muted">
                <span class={`badge ${RANKS[rank]}`} title={MEANINGS[rank]}>
                  {score(sample.reward)}
                </span>{' '}
                {detailsOf(sample)}
              </p>
              <p class="text">
                {sample.text === '' ? <span class="muted">no text</span> : <LongText text={sample.text} />}
              </p>
              {sample.errors.map(({ grader, message }) => (
                <p key={grader} class="errors small">
                  {grader}: {message}
                </p>
              ))}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** A long text begins folded. */
function LongText({ text }: { text: string }) {
  const isOpen = useSignal(false);
  if (text.length <= FOLDED) return <>{text}</>;
  return (
    <>
      {isOpen.value ? text : `${text.slice(0, FOLDED)}…`}{' '}
      <button type="button" class="quiet small fold" onClick={() => (isOpen.value = !isOpen.value)}>
        {isOpen.value ? 'Show less' : `Show all ${count(text.length)} characters`}
      </button>
    </>
  );
}
