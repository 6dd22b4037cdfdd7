import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Dataset } from '../../../contracts/types.js';
import { Labelled } from '../parts/labelled.js';
import { valueAt } from './draft.js';
import { PATHS } from './fields.js';
import { NumberInput, useForm } from './inputs.js';
import { promptLines, withPromptLines } from './sample-prompts.js';

/** Step 4: prompts that checkpoints answer. */
export function SamplesSection({ dataset }: { dataset: Dataset | undefined }) {
  const { draft, plan } = useForm();
  const isChat = dataset ? dataset.num_chats > 0 : plan.resolved.value?.data.chat_template != null;
  const lines = promptLines(draft.value);
  const text = useSignal(lines ?? '');
  useEffect(() => {
    // The document may be changed elsewhere; an empty line that is being written stays.
    const written = promptLines(withPromptLines({}, text.value, isChat));
    if (lines !== null && lines !== written) text.value = lines;
  }, [lines, text, isChat]);
  return (
    <section class="card part" aria-labelledby="new-samples">
      <h2 id="new-samples">Samples</h2>
      <p class="small muted">Each checkpoint answers these prompts, so that you see what the model learns.</p>
      {lines === null ? (
        <p class="small">
          The document has prompts of several lines or messages. Change them in the document.
        </p>
      ) : (
        <Labelled label={`${isChat ? 'Questions' : 'Texts to continue'}, one a line`} path={PATHS.prompts}>
          {(attributes) => (
            <textarea
              {...attributes}
              rows={3}
              value={text.value}
              onInput={({ currentTarget: { value } }) => {
                text.value = value;
                draft.value = withPromptLines(draft.value, value, isChat);
              }}
            />
          )}
        </Labelled>
      )}
      {valueAt(draft.value, PATHS.prompts) !== undefined && (
        <div class="fields">
          <NumberInput path={PATHS.sampleTokens} label="Tokens of an answer" />
        </div>
      )}
    </section>
  );
}
