export function trim(): void;
export function trimPackages(modules: string): string[];
