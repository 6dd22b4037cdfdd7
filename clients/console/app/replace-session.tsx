import { ActionButton } from '../parts/action.js';
import { me, share } from './session.js';

/** True if a link may begin a session without asking: nobody is signed in, or a share that shows one run. */
export const isFree = () => me() === null || share.value !== null;

interface ReplaceProps {
  /** Effect of the link, as sentences. */
  effect: string;
  label: string;
  act: () => Promise<void>;
}

/** Asks before a link replaces the session of a key or a user. */
export function AskToReplace({ effect, label, act }: ReplaceProps) {
  const name = me()?.user?.name ?? me()?.api_key?.name;
  return (
    <>
      <p>
        This browser is signed in as {name}. {effect}
      </p>
      <ActionButton label={label} kind="primary" act={act} />
      <a href="#/runs">Stay signed in</a>
    </>
  );
}
