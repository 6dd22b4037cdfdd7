import type { Fault } from '../app/connection.js';

/** Tells an error, until its owner removes it. */
export function Notice({ fault, onClose }: { fault: Fault; onClose?: () => void }) {
  const { code, message, fields } = fault;
  return (
    <div class="notice bad" role="alert">
      <p>
        {message} <code class="muted">{code}</code>
      </p>
      {fields.length > 0 && (
        <ul>
          {fields.map(({ pointer, message: text }) => (
            <li key={pointer}>
              <code>{pointer}</code> {text}
            </li>
          ))}
        </ul>
      )}
      {onClose && (
        <button type="button" class="quiet" onClick={onClose}>
          Dismiss
        </button>
      )}
    </div>
  );
}
