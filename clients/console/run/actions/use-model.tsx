import type { Job } from '../../../../contracts/types.js';
import { client } from '../../app/connection.js';
import { linkTo } from '../../app/router.js';
import { may } from '../../app/session.js';
import { Snippets } from '../../parts/snippets.js';
import { USES } from './use-commands.js';

/** Actions for the model of a run that has ended. */
export function UseModel({ job: { export: exported, spec } }: { job: Job }) {
  if (exported === null) return null;
  const { checkpoint_id } = exported;
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
      <Snippets
        label="Use it by"
        texts={USES}
        about={{
          baseUrl: client.options.baseUrl,
          checkpoint_id,
          fine_tuned: `ft:${spec.model.preset ?? spec.model.config.model_type}:${spec.project}::${checkpoint_id}`,
          isChat: spec.data.chat_template !== null,
        }}
      />
    </section>
  );
}
