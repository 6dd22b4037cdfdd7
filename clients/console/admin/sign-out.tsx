import { useSignal } from '@preact/signals';
import { client } from '../app/connection.js';
import { ActionButton } from '../parts/action.js';

interface SignOutProps {
  /** Id of a key or a user. */
  id: string;
  name: string;
  /** The session of this browser is one of those that end. */
  isOwn: boolean;
  onDone: () => Promise<void>;
}

/** Ends all browser sessions of somebody. */
export function SignOut({ id, name, isOwn, onDone }: SignOutProps) {
  const isDone = useSignal(false);
  const act = async () => {
    isDone.value = false;
    await client.sessions.endOf(id);
    isDone.value = true;
    await onDone();
  };
  return (
    <>
      <ActionButton
        label="Sign out"
        kind="quiet"
        confirm={`End all browser sessions of ${name}${isOwn ? ', also yours' : ''}?`}
        act={act}
      />
      <span role="status" class="muted small">
        {isDone.value && 'signed out'}
      </span>
    </>
  );
}
