import { useSignal } from '@preact/signals';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Empty } from '../parts/empty.js';
import { count } from '../parts/format.js';
import { Notice } from '../parts/notice.js';

const REREAD_MS = 5_000;

/** The samples of a step of reinforcement learning, with their rewards. */
export function RolloutSamples({ id }: { id: string }) {
  const step = useSignal<number | null>(null);
  const read = () => client.calls.rollout(id, step.value ?? undefined);
  const { value, fault } = useLoaded(read, [id, step.value], { every_ms: REREAD_MS });
  const rollout = value.value;
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
      {fault.value && <Notice fault={fault.value} />}
      {rollout === null && !fault.value && <Empty title="No step has samples yet." />}
      {rollout?.groups.map(({ line, prompt, samples }) => (
        <section key={line} class="card samples">
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
