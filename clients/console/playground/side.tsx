import { useSignal } from '@preact/signals';
import type { SampledToken } from '../../../contracts/types.js';
import { faultOf } from '../app/connection.js';
import { count } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import type { Answer } from './answer.js';
import { type Choice, likelihood, percent } from './request.js';
import type { OneSide } from './sides.js';

interface SideProps {
  side: OneSide;
  number: number;
  choices: readonly Choice[];
}

/** One model and its answers. */
export function Side({ side, number, choices }: SideProps) {
  const { model, turns } = side;
  const label = choices.find(({ id }) => id === model.value)?.label;
  return (
    <section class="card side" aria-label={`Model ${number}`}>
      <label>
        Model {number}
        <input
          type="text"
          list="models"
          autocomplete="off"
          placeholder="ckpt_… or mdl_…, or search by name"
          value={model.value}
          onInput={(event) => (model.value = event.currentTarget.value)}
        />
      </label>
      <p class="small muted">{label ?? (choices.length === 0 ? 'No checkpoint or model yet.' : '')}</p>
      {turns.value.map(({ prompt, answer, isBorrowed }, index) => (
        <article key={index}>
          <p class="prompt">{prompt}</p>
          <AnswerText answer={answer} />
          {isBorrowed && (
            <p class="small muted">It has no chat template and answers by that of the other model.</p>
          )}
        </article>
      ))}
    </section>
  );
}

const PHASES: Readonly<Record<Answer['phase'], string>> = {
  waiting: 'waiting',
  loading: 'The model is loading. It is asked again.',
  writing: 'writing',
  done: 'done',
  stopped: 'stopped',
  failed: 'failed',
};

function AnswerText({ answer }: { answer: Answer }) {
  const { phase, text, tokens, error } = answer;
  return (
    <>
      {tokens.length > 0 ? <Tokens tokens={tokens} /> : <p class="text">{text}</p>}
      {error !== undefined && <Notice fault={faultOf(error)} />}
      <p class="small muted" role="status">
        {phase === 'done' ? figures(answer) : PHASES[phase]}
      </p>
    </>
  );
}

function figures({ first_ms, end }: Answer): string {
  if (end === null) return '';
  return [
    `${count(end.tokens)} ${end.tokens === 1 ? 'token' : 'tokens'}`,
    end.tokens_per_s !== null && `${end.tokens_per_s.toFixed(1)} tokens/s`,
    first_ms !== null && `first after ${count(first_ms)} ms`,
    `finish: ${end.finish_reason}`,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** Tokens by how likely they were. One of them is in the order of the tabulator; arrows go to the others. */
function Tokens({ tokens }: { tokens: readonly SampledToken[] }) {
  const current = useSignal<number | null>(null);
  const shown = current.value === null ? undefined : tokens[current.value];
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || !(event.target instanceof HTMLElement)) return;
    event.preventDefault();
    const next = step === 1 ? event.target.nextElementSibling : event.target.previousElementSibling;
    if (next instanceof HTMLElement) next.focus();
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is no text */}
      <div class="text" role="group" aria-label="Tokens of the answer" onKeyDown={move}>
        {tokens.map(({ token, logprob }, index) => (
          <button
            key={index}
            type="button"
            class={`token likely-${likelihood(logprob)}`}
            tabIndex={index === (current.value ?? 0) ? 0 : -1}
            aria-label={`${JSON.stringify(token)}, ${percent(logprob)}`}
            onFocus={() => (current.value = index)}
            onMouseEnter={() => (current.value = index)}
          >
            {token}
          </button>
        ))}
      </div>
      <p class="small detail">
        {shown === undefined ? (
          <span class="muted">Point at a token for its probability.</span>
        ) : (
          <>
            <code>{JSON.stringify(shown.token)}</code> {percent(shown.logprob)} ({shown.logprob.toFixed(3)})
            {shown.top.map(({ token, logprob }) => (
              <span key={token} class="muted">
                <code>{JSON.stringify(token)}</code> {percent(logprob)}
              </span>
            ))}
          </>
        )}
      </p>
    </>
  );
}
