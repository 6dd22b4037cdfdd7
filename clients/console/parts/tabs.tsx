import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface TabsProps {
  label: string;
  names: readonly string[];
  current: string;
  onChoose: (name: string) => void;
  /** Panel of the current tab. */
  children: ComponentChildren;
}

export function Tabs({ label, names, current, onChoose, children }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // On a narrow page the list scrolls.
    list.current
      ?.querySelector('[aria-selected=true]')
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <>
      <div class="tabs" ref={list} role="tablist" aria-label={label}>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={name === current}
            aria-controls="panel"
            onClick={() => onChoose(name)}
          >
            {name}
          </button>
        ))}
      </div>
      <div id="panel" class="panel" role="tabpanel" aria-labelledby={`tab-${current}`}>
        {children}
      </div>
    </>
  );
}
