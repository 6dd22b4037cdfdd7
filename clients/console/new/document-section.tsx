import { useForm } from './inputs.js';
import { JsonInput } from './json-input.js';

/** The whole document as JSON, for fields that the form does not show. */
export function DocumentSection() {
  const { draft } = useForm();
  return (
    <details class="card part">
      <summary>Document</summary>
      <div class="field">
        <p class="small muted">The form changes some of its fields; all of them can be written here.</p>
        <JsonInput
          label="Document as JSON"
          rows={20}
          value={draft.value}
          onWrite={(written) => {
            draft.value = written;
          }}
        />
      </div>
    </details>
  );
}
