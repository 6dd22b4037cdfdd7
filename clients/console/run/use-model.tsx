import { useSignal } from '@preact/signals';
import type { Job } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { linkTo } from '../app/router.js';
import { may } from '../app/session.js';
import { Copy } from '../parts/copy.js';
import { USES } from './use-commands.js';

const NAMES = Object.keys(USES);

/** What people do with the model of a run that has ended. */
export function UseModel({ job: { export: exported, spec } }: { job: Job }) {
  const chosen = useSignal(NAMES[0] ?? '');
  if (exported === null) return null;
  const { checkpoint_id } = exported;
  const text =
    USES[chosen.value]?.({
      baseUrl: client.options.baseUrl,
      checkpoint_id,
      isChat: spec.data.chat_template !== null,
    }) ?? '';
  return (
    <section class="card part" aria-labelledby="use-model">
      <div class="title">
        <h2 id="use-model">The model</h2>
        <span class="spring" />
        {may('jobs:write') && (
          <>
            <a class="button primary" href={linkTo(['playground'], { model: checkpoint_id })}>
              Try it
            </a>
            <a class="button" href={linkTo(['new'], { weights: checkpoint_id })}>
              Fine-tune further
            </a>
          </>
        )}
      </div>
      <div class="filters">
        <select
          aria-label="Use it by"
          value={chosen.value}
          onChange={({ currentTarget: { value } }) => (chosen.value = value)}
        >
          {NAMES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <Copy text={text} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <pre class="preview" tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}
