import { useSignal } from '@preact/signals';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Empty } from '../parts/empty.js';
import { count } from '../parts/format.js';
import { Notice } from '../parts/notice.js';

/** The newest step changes while the job runs. */
const REREAD_MS = 5_000;

/** The samples of a step of reinforcement learning, with their rewards. */
export function RolloutSamples({ id, isRunning }: { id: string; isRunning: boolean }) {
  const step = useSignal<number | null>(null);
  const read = () => client.calls.rollout(id, step.value ?? undefined);
  const everyMs = isRunning && step.value === null ? REREAD_MS : 0;
  const { value, fault } = useLoaded(read, [id, step.value], { every_ms: everyMs });
  const rollout = value.value;
  const isEmpty = rollout === null && (fault.value === null || fault.value.code === 'rollout_not_found');
  return (
    <>
      <label class="field">
        Step
        <input
          type="number"
          min={1}
          placeholder="newest"
          onChange={({ currentTarget: { valueAsNumber: given } }) => {
            step.value = given >= 1 ? given : null;
          }}
        />
      </label>
      {fault.value && !isEmpty && <Notice fault={fault.value} />}
      {isEmpty && <Empty title="No step has samples yet." />}
      {rollout?.groups.map(({ line, prompt, samples }, group) => (
        <section key={group} class="card samples">
          <h2>{prompt}</h2>
          <p class="muted small">
            step {count(rollout.step)}, line {count(line)}
          </p>
          <ol aria-label="Samples with their rewards">
            {samples.map(({ text, reward, errors }, at) => (
              <li key={at}>
                <span class="muted small">{reward.toPrecision(3)}</span>
                <p>{text}</p>
                {errors.map(({ grader, message }) => (
                  <p key={grader} class="bad">
                    {grader}: {message}
                  </p>
                ))}
              </li>
            ))}
          </ol>
        </section>
      ))}
    </>
  );
}
