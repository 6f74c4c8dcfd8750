from fanlight.cli import main

main()
