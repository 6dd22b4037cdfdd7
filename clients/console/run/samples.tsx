import { useMemo } from 'preact/hooks';
import { promptText } from '../../text/prompt-text.js';
import { answersIn, type StepAnswers } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { Empty } from '../parts/empty.js';
import { count } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import '../style/samples.css';
import type { LiveRun } from './live-run.js';
import { RolloutSamples } from './rollout-samples.js';

/** Checkpoints also answer after the end of the run, when its stream is over. */
const REREAD_MS = 10_000;

/** Samples of a step with their rewards, or how checkpoints answer the prompts of the document. */
export function Samples({ run }: { run: LiveRun }) {
  const job = run.job.value;
  const objective = job?.spec.train.objective;
  if (job !== null && objective?.type === 'grpo')
    return <RolloutSamples key={job.id} job={job} length={objective.num_iterations} />;
  return <Answers run={run} />;
}

/** How checkpoints answer the prompts of the document, side by side. */
function Answers({ run }: { run: LiveRun }) {
  const job = run.job.value;
  const id = job?.id ?? '';
  const reader = useMemo(() => new AnswersReader(id), [id]);
  const { value, fault } = useLoaded(() => reader.read(), [reader], { every_ms: REREAD_MS });
  const prompts = job?.spec.checkpoint.samples?.prompts ?? [];
  if (fault.value) return <Notice fault={fault.value} />;
  if (prompts.length === 0)
    return (
      <Empty title="The document has no prompts.">
        <p>
          Each checkpoint answers the prompts of <code>checkpoint.samples</code>.
        </p>
      </Empty>
    );
  if (value.value === null) return <p class="muted">…</p>;
  if (value.value.length === 0) return <Empty title="No checkpoint has answered yet." />;
  const newest = value.value.toReversed();
  return (
    <>
      {prompts.map((prompt, at) => (
        <section key={promptText(prompt)} class="card samples">
          <h2>{promptText(prompt)}</h2>
          <ol aria-label="Answers, newest first">
            {newest.map(({ step, answers, error }) => (
              <li key={step}>
                <span class="muted small">step {count(step)}</span>
                <p class={error === null ? undefined : 'errors'}>{answers[at] ?? error}</p>
              </li>
            ))}
          </ol>
        </section>
      ))}
    </>
  );
}

/** Reads the answers of a run; each read continues where the one before ended. */
class AnswersReader {
  private position: string | undefined;
  private readonly bySteps = new Map<number, StepAnswers>();

  constructor(private readonly id: string) {}

  async read(): Promise<StepAnswers[]> {
    for await (const event of client.jobs.events(this.id, this.position)) {
      this.position = event.position;
      const answers = answersIn(event);
      if (answers !== null) this.bySteps.set(answers.step, answers);
    }
    return [...this.bySteps.values()];
  }
}
